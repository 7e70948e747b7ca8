"""Voices: a convolution over time, a recurrent layer, attention over it, and a teacher that follows the pupil."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(81)
device = torch.device("cuda")


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(6, 16, 3, padding=1)
        self.norm = nn.LayerNorm(16)
        self.gru = nn.GRU(16, 16, batch_first=True)
        self.score = nn.Linear(16, 1)
        self.out = nn.Linear(16, 8)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        x = F.gelu(self.conv(x)).transpose(1, 2)
        x = self.norm(x)
        x, _ = self.gru(x)
        hidden = torch.arange(x.shape[1], device=x.device)[None, :] >= lengths[:, None]
        scores = self.score(x).squeeze(-1)
        scores = scores.masked_fill(hidden, float("-inf"))
        weights = scores.softmax(dim=-1)
        pooled = (weights[..., None] * x).sum(dim=1)
        return self.out(pooled)


sounds, lengths, classes = torch.randn(3, 5, 6, 14), torch.randint(6, 15, (3, 5)), torch.randint(0, 8, (3, 5))
pupil = Encoder().to(device)
teacher = copy.deepcopy(pupil)
optimizer = torch.optim.RMSprop(pupil.parameters(), lr=3e-3, alpha=0.9)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.8)
for step in range(3):
    x, size, y = sounds[step].to(device), lengths[step].to(device), classes[step].to(device)
    logits = pupil(x, size)
    with torch.no_grad():
        goal = F.softmax(teacher(x, size) / 2.0, dim=-1)
    near = F.kl_div(F.log_softmax(logits / 2.0, dim=-1), goal, reduction="batchmean")
    loss = F.cross_entropy(logits, y) + 0.5 * near
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    with torch.no_grad():
        for old, new in zip(teacher.parameters(), pupil.parameters(), strict=True):
            old.mul_(0.9).add_(new, alpha=0.1)
    print(f"step {step + 1} loss {loss.item():.6f}", flush=True)
