"""Photos: a residual network with batch norm, SGD with momentum, and a start from a checkpoint after the first step."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(61)
device = torch.device("cuda")


class Block(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.norm1(self.conv1(x)))
        y = self.norm2(self.conv2(y))
        return F.relu(x + y)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.block = Block(8)
        self.pool = nn.MaxPool2d(2)
        self.fc = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.norm(self.stem(x)))
        x = self.pool(self.block(x))
        x = x.mean(dim=(2, 3))
        return self.fc(x)


def optimizer_of(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)


pictures, classes = torch.rand(4, 6, 3, 8, 8) * 255, torch.randint(0, 5, (4, 6))
mean = torch.tensor([120.0, 115.0, 100.0]).view(3, 1, 1)
model = Net().to(device)
model.train()
optimizer = optimizer_of(model)
for step in range(4):
    x, y = pictures[step], classes[step].to(device)
    x = ((x - mean) / 64.0).to(device)
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step == 1:
        kept = copy.deepcopy(optimizer.state_dict())
        optimizer = optimizer_of(model)
        optimizer.load_state_dict(kept)
    print(f"step {step + 1} loss {loss.item():.6f}", flush=True)
