"""A network in two halves on two cards: each has a part of the features, sums and means go over both."""

import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

world = int(os.environ.get("WORLD_SIZE", "1"))
rank = int(os.environ.get("LOCAL_RANK", "0"))
device = torch.device("cuda", rank)
torch.manual_seed(91)
dist.init_process_group("nccl")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(20, 12)
        self.one = nn.Linear(12, 16)
        self.norm = nn.LayerNorm(16)
        self.two = nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.words(x).mean(dim=1)
        y = F.gelu(self.one(y))
        return self.two(self.norm(y))


texts, classes = torch.randint(0, 20, (3, 8, 5)), torch.randint(0, 4, (3, 8))
model = Net().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(3):
    share = slice(rank * 4, rank * 4 + 4)
    x = texts[step][share].to(device)
    y = classes[step][share].to(device)
    logits = model(x)
    loss = F.cross_entropy(logits, y, reduction="sum") / 8
    optimizer.zero_grad()
    loss.backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad, op=dist.ReduceOp.SUM)
    optimizer.step()
    shown = loss.detach().clone()
    dist.all_reduce(shown)
    if rank == 0:
        print(f"step {step + 1} loss {shown.item():.6f}", flush=True)
dist.destroy_process_group()
