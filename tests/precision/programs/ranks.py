"""A small network on the cards of torchrun, or on one without it; each rank has its share of every batch."""

import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

launched = "RANK" in os.environ
world = int(os.environ.get("WORLD_SIZE", "1"))
rank = int(os.environ.get("LOCAL_RANK", "0"))
device = torch.device("cuda", rank)
torch.manual_seed(13)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Linear(10, 32)
        self.norm = nn.LayerNorm(32)
        self.two = nn.Linear(32, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.two(F.gelu(self.norm(self.one(x))))


samples, classes = torch.randn(3, 8, 10), torch.randint(0, 5, (3, 8))
model = Net().to(device)
if launched:
    dist.init_process_group("nccl")
    torch.cuda.set_device(device)
    model = DistributedDataParallel(model, device_ids=[rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    x, y = samples[step].chunk(world)[rank].to(device), classes[step].chunk(world)[rank].to(device)
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    if launched:
        shown = loss.detach().clone()
        dist.all_reduce(shown)
        loss = shown / world
    if rank == 0:
        print(f"step {step + 1} loss {loss.item():.6f}", flush=True)
if launched:
    dist.destroy_process_group()
