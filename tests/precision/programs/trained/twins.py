"""Twins: two views of a series are to be alike, and unlike all others; dilated convolutions, a slow copy, SGD."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(97)
device = torch.device("cuda")


class Causal(nn.Module):
    def __init__(self, into: int, out: int, apart: int) -> None:
        super().__init__()
        self.left = 2 * apart
        self.conv = nn.utils.parametrizations.weight_norm(nn.Conv1d(into, out, 3, dilation=apart))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.leaky_relu(self.conv(F.pad(x, (self.left, 0))), 0.1)


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(Causal(3, 12, 1), Causal(12, 12, 2), Causal(12, 12, 4))
        self.norm = nn.InstanceNorm1d(12, affine=True)
        self.out = nn.Linear(12, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        seen = self.norm(self.layers(x))
        return F.normalize(self.out(seen.amax(dim=-1)), dim=-1)


series = torch.randn(3, 8, 3, 20).cumsum(dim=-1)
jitter = 0.1 * torch.randn(3, 8, 3, 20)
model = Encoder().to(device)
slow = copy.deepcopy(model).requires_grad_(False)
queue = F.normalize(torch.randn(16, 10), dim=-1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=6)
for step in range(3):
    one, other = series[step].to(device), (series[step] + jitter[step]).to(device)
    asked = model(one)
    with torch.no_grad():
        answers = slow(other)
    alike = (asked * answers).sum(dim=-1, keepdim=True)
    unlike = asked @ queue.t()
    logits = torch.cat((alike, unlike), dim=1) / 0.2
    loss = F.cross_entropy(logits, torch.zeros(8, dtype=torch.long, device=device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    with torch.no_grad():
        for old, new in zip(slow.parameters(), model.parameters(), strict=True):
            old.mul_(0.9).add_(new, alpha=0.1)
        queue = torch.cat((queue[8:], answers))
    print(f"step {step + 1} loss {loss.item():.6f}", flush=True)
