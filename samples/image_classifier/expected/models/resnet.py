import torch
import torch.nn as nn
import torch.nn.functional as F


def conv3x3(in_planes, out_planes, stride=1):
    return nn.Conv2d(in_planes, out_planes, kernel_size=3, stride=stride, padding=1, bias=False)


class BasicBlock(nn.Module):
    def __init__(self, in_planes, planes, stride=1):
        super().__init__()
        self.conv1 = conv3x3(in_planes, planes, stride)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = conv3x3(planes, planes)
        self.bn2 = nn.BatchNorm2d(planes)
        self.shortcut = nn.Identity()
        if stride != 1 or in_planes != planes:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_planes, planes, kernel_size=1, stride=stride, bias=False),
                nn.BatchNorm2d(planes),
            )

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)), inplace=True)
        out = self.bn2(self.conv2(out))
        return F.relu(out + self.shortcut(x), inplace=True)


class ResNet(nn.Module):
    """CIFAR-style ResNet: 3x3 stem, no max pooling."""

    def __init__(self, layers, widths, num_classes=10):
        super().__init__()
        self.in_planes = widths[0]
        self.stem = nn.Sequential(conv3x3(3, widths[0]), nn.BatchNorm2d(widths[0]), nn.ReLU(inplace=True))
        stages = []
        for index, (count, width) in enumerate(zip(layers, widths)):
            stages.append(self._stage(count, width, stride=1 if index == 0 else 2))
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(widths[-1], num_classes)
        self.apply(self._init)

    def _stage(self, count, width, stride):
        blocks = []
        for index in range(count):
            blocks.append(BasicBlock(self.in_planes, width, stride if index == 0 else 1))
            self.in_planes = width
        return nn.Sequential(*blocks)

    @staticmethod
    def _init(module):
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode='fan_out', nonlinearity='relu')
        elif isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=0.01)
            nn.init.zeros_(module.bias)

    def forward(self, x):
        x = self.stages(self.stem(x))
        x = x.mean(dim=(2, 3))
        # logits in fp32 also under autocast
        with torch.npu.amp.autocast(enabled=False):
            return self.head(x.float())
