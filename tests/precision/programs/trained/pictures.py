"""Pictures: convolutions with a group norm, SGD with Nesterov's momentum, gradients cut at a value."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(29)
device = torch.device("cuda")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1)
        self.norm1 = nn.GroupNorm(2, 8)
        self.conv2 = nn.Conv2d(8, 8, 3, padding=1, groups=2)
        self.down = nn.Conv2d(8, 12, 3, stride=2, padding=1)
        self.fc = nn.Linear(192, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.leaky_relu(self.norm1(self.conv1(x)), 0.1)
        x = x + F.elu(self.conv2(x))
        x = F.avg_pool2d(self.down(x), 3)
        x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
        return self.fc(x.flatten(1))


pictures = torch.rand(3, 6, 3, 12, 12)
labels = torch.randint(0, 6, (3, 6))
model = Net().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3, nesterov=True)
for step in range(3):
    x, y = pictures[step].to(device), labels[step].to(device)
    logits = model(x)
    loss = F.cross_entropy(logits, y, label_smoothing=0.1)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(model.parameters(), 0.02)
    optimizer.step()
    print(f"step {step + 1} loss {loss.item():.6f}", flush=True)
