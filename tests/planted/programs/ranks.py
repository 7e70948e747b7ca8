# Distributed by hand, for one card and for many: figures are summed over the ranks, the best model is kept.
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def mean_over_ranks(value, world):
    if world > 1:
        dist.all_reduce(value, op=dist.ReduceOp.SUM)
        value = value / world
    return value


def main():
    rank = int(os.environ.get("RANK", "0"))
    world = int(os.environ.get("WORLD_SIZE", "1"))
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    torch.cuda.set_device(local_rank)
    device = torch.device("cuda", local_rank)
    if world > 1:
        dist.init_process_group("nccl")
    torch.manual_seed(31)
    data = torch.randn(64, 8)
    labels = (data.sum(1) > 0).long()
    train_set = TensorDataset(data[:48], labels[:48])
    val_x, val_y = data[48:].to(device), labels[48:].to(device)
    sampler = DistributedSampler(train_set, num_replicas=world, rank=rank, shuffle=True, seed=9)
    loader = DataLoader(train_set, batch_size=16 // world, sampler=sampler)

    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2)).to(device)
    center = torch.zeros(8, device=device)
    if rank == 0:
        center.copy_(data.mean(0))
    if world > 1:
        dist.broadcast(center, src=0)
        model = DistributedDataParallel(model, device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(3):
        sampler.set_epoch(epoch)
        model.train()
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            loss = criterion(model(x - center), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            shown = mean_over_ranks(loss.detach().clone(), world)
        model.eval()
        with torch.no_grad():
            right = (model(val_x - center).argmax(1) == val_y).float().mean()
        right = mean_over_ranks(right, world)
        if rank == 0:
            print(f"epoch {epoch}: loss {shown.item():.4f}, accuracy {right.item():.3f}")
        if world > 1:
            dist.barrier()
    if rank == 0:
        torch.save(optimizer.state_dict(), "optimizer.pt")
    if world > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
