"""Networks with the outline of those that scripts take: `features`, `fc`, children."""

import torch
from torch import nn


class _VGG(nn.Module):
    def __init__(self, *args, **kwargs):
        super().__init__()
        layers, last = [], 3
        for _ in range(18):
            layers += [nn.Conv2d(last, 8, 3, padding=1), nn.ReLU(inplace=False)]
            last = 8
        self.features = nn.Sequential(*layers)

    def forward(self, x):
        return self.features(x)


class _ResNet(nn.Module):
    def __init__(self, *args, num_classes=10, **kwargs):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 3, 2, 1), nn.BatchNorm2d(64)
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(64, num_classes)

    def forward(self, x):
        return self.fc(torch.flatten(self.avgpool(torch.relu(self.bn1(self.conv1(x)))), 1))


vgg16 = vgg19 = vgg11 = _VGG
resnet18 = resnet34 = resnet50 = resnet101 = resnet152 = _ResNet


class _Weights:
    DEFAULT = IMAGENET1K_V1 = None


VGG16_Weights = VGG19_Weights = ResNet18_Weights = ResNet50_Weights = ResNet152_Weights = _Weights
