"""Launch: torchrun --nproc_per_node=N main.py"""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(1, 8, 3, padding=1)
        self.n1 = nn.GroupNorm(2, 8)
        self.c2 = nn.Conv2d(8, 12, 3, stride=2, padding=1)
        self.fc = nn.Linear(12, 3)

    def forward(self, x):
        x = F.relu(self.n1(self.c1(x)))
        return self.fc(F.relu(self.c2(x)).mean((2, 3)))


def make(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 3, (n,), generator=g)
    x = torch.randn(n, 1, 10, 10, generator=g)
    x[torch.arange(n), 0, y * 3, :] += 1.5
    return TensorDataset(x, y)


def reduce_mean(t):
    t = t.clone()
    dist.all_reduce(t)
    return t / dist.get_world_size()


def evaluate(model, loader, device):
    model.eval()
    stats = torch.zeros(3, device=device)
    with torch.no_grad():
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            out = model(x)
            stats[0] += F.cross_entropy(out, y, reduction="sum")
            stats[1] += (out.argmax(1) == y).sum()
            stats[2] += y.numel()
    dist.all_reduce(stats)
    model.train()
    return (stats[0] / stats[2]).item(), (stats[1] / stats[2]).item()


def main():
    dist.init_process_group("nccl")
    rank, local_rank = dist.get_rank(), int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    device = torch.device("cuda", local_rank)
    torch.manual_seed(0)
    train_set, val_set = make(64, 1), make(32, 2)
    sampler = DistributedSampler(train_set, shuffle=True, seed=9)
    per_rank = 16 // dist.get_world_size()
    train_loader = DataLoader(train_set, batch_size=per_rank, sampler=sampler)
    val_loader = DataLoader(val_set, batch_size=8, sampler=DistributedSampler(val_set, shuffle=False))
    model = DDP(ConvNet().to(device), device_ids=[local_rank])
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, threshold=0.1, factor=0.5)
    best = float("inf")
    for epoch in range(4):
        sampler.set_epoch(epoch)
        for x, y in train_loader:
            x, y = x.to(device), y.to(device)
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        loss = reduce_mean(loss.detach())
        val_loss, acc = evaluate(model, val_loader, device)
        scheduler.step(val_loss)
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.5f} val loss {val_loss:.5f} accuracy {acc:.4f}")
            if val_loss < best:
                torch.save(model.module.state_dict(), "best.pt")
        best = min(best, val_loss)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
