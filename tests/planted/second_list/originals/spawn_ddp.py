import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel as DDP


class ToyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net1 = nn.Linear(10, 20)
        self.relu = nn.ReLU()
        self.net2 = nn.Linear(20, 5)

    def forward(self, x):
        return self.net2(self.relu(self.net1(x)))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


def setup(rank, world_size, port):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = port
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=world_size)


def demo(rank, world_size, port):
    setup(rank, world_size, port)
    torch.manual_seed(0)
    model = DDP(ToyModel().to(rank), device_ids=[rank])
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    loss_fn = nn.MSELoss()
    g = torch.Generator().manual_seed(100)
    x = torch.randn(64, 10, generator=g)
    y = torch.randn(64, 5, generator=g)
    x, y = x[rank::world_size], y[rank::world_size]
    for step in range(12):
        i = (step * 8) % len(x)
        out = model(x[i:i + 8].to(rank))
        loss = loss_fn(out, y[i:i + 8].to(rank))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total = loss.detach().clone()
        dist.all_reduce(total)
        if rank == 0:
            print("step", step, "loss", round(total.item() / world_size, 6))
    if rank == 0:
        torch.save(model.module.state_dict(), "toy.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    world_size = min(2, torch.cuda.device_count())
    mp.spawn(demo, args=(world_size, free_port()), nprocs=world_size, join=True)
