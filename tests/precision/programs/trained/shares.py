"""A network on two cards whose gradients the program adds up by itself."""

import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

world = int(os.environ.get("WORLD_SIZE", "1"))
rank = int(os.environ.get("LOCAL_RANK", "0"))
device = torch.device("cuda", rank)
torch.manual_seed(41)
dist.init_process_group("nccl")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Linear(9, 24)
        self.norm = nn.LayerNorm(24)
        self.two = nn.Linear(24, 24)
        self.three = nn.Linear(24, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.gelu(self.norm(self.one(x)))
        x = x + F.mish(self.two(x))
        return self.three(x)


samples, classes = torch.randn(3, 8, 9), torch.randint(0, 4, (3, 8))
torch.manual_seed(rank)
model = Net().to(device)
for parameter in model.parameters():
    dist.broadcast(parameter.data, src=0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.8)
for step in range(3):
    x, y = samples[step].chunk(world)[rank].to(device), classes[step].chunk(world)[rank].to(device)
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad.div_(world)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if rank == 0:
        print(f"step {step + 1} loss {loss.item():.6f}", flush=True)
dist.destroy_process_group()
