"""Noises: which noise was added to a wave, by a small U of one-dimensional convolutions that is told the time; an
average of the weights is kept."""

import copy
import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(83)
device = torch.device("cuda")
STEPS, WIDTH = 20, 8


class Block(nn.Module):
    def __init__(self, into: int, out: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(into, out, 3, padding=1)
        self.norm = nn.GroupNorm(4, out)
        self.time = nn.Linear(16, 2 * out)

    def forward(self, x: torch.Tensor, told: torch.Tensor) -> torch.Tensor:
        scale, shift = self.time(told)[..., None].chunk(2, dim=1)
        return F.silu(self.norm(self.conv(x)) * (1 + scale) + shift)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tell = nn.Linear(16, 16)
        self.first = Block(1, WIDTH)
        self.down = Block(WIDTH, WIDTH)
        self.up = Block(2 * WIDTH, WIDTH)
        self.out = nn.Conv1d(WIDTH, 1, 1)

    def forward(self, x: torch.Tensor, when: torch.Tensor) -> torch.Tensor:
        rates = torch.exp(-math.log(1000.0) * torch.arange(8, device=when.device) / 8)
        angles = when[:, None].float() * rates[None, :]
        told = F.silu(self.tell(torch.cat((angles.sin(), angles.cos()), dim=-1)))
        kept = self.first(x, told)
        low = self.down(F.avg_pool1d(kept, 2), told)
        wide = F.interpolate(low, scale_factor=2.0, mode="nearest")
        y = self.up(torch.cat((wide, kept), dim=1), told)
        return self.out(y)


waves = torch.sin(torch.linspace(0, 40, 3 * 6 * 16)).view(3, 6, 1, 16)
noise, times = torch.randn(3, 6, 1, 16), torch.randint(0, STEPS, (3, 6))
shares = torch.cumprod(1 - torch.linspace(1e-3, 0.2, STEPS), dim=0)
model = Net().to(device)
average = copy.deepcopy(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
for step in range(3):
    wave, added, when = waves[step].to(device), noise[step].to(device), times[step].to(device)
    share = shares.to(device)[when][:, None, None]
    noisy = share.sqrt() * wave + (1 - share).sqrt() * added
    guess = model(noisy, when)
    loss = F.mse_loss(guess, added)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    with torch.no_grad():
        for old, new in zip(average.parameters(), model.parameters(), strict=True):
            old.lerp_(new, 0.1)
    print(f"step {step + 1} loss {loss.item():.6f}", flush=True)
