"""Train a classifier of points on one GPU, or on several with torchrun."""

import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import clip_grad_norm_
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

from net import Mixer

torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = False


def make_data(count):
    generator = torch.Generator().manual_seed(1)
    points = torch.rand(count, 2, generator=generator) * 2 - 1
    return TensorDataset(points, (points[:, 0] > 0).long() * 2 + (points[:, 1] > 0).long())


def make_optimizer(name, model, lr):
    if name == "sgd":
        return optim.SGD(model.parameters(), lr=lr, momentum=0.9, nesterov=True)
    return optim.AdamW(model.parameters(), lr=lr, weight_decay=0.05, foreach=True)


def train_one_epoch(model, loader, optimizer, epoch, clip):
    """One pass over the data."""
    model.train()
    for step, (points, labels) in enumerate(loader):
        points, labels = points.cuda(non_blocking=True), labels.cuda(non_blocking=True)
        # forward, backward
        loss = F.cross_entropy(model(points), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = clip_grad_norm_(model.parameters(), max_norm=clip)
        optimizer.step()
        print(f"loss {epoch} {step} {loss.item():.5f} norm {norm.item():.4f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--optimizer", choices=["adamw", "sgd"], default="adamw")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--clip", type=float, default=0.5)
    parser.add_argument("--resume", default="")
    parser.add_argument("--output", default="last.pt")
    args = parser.parse_args()

    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world > 1:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        dist.init_process_group("nccl")
    torch.manual_seed(0)
    data = make_data(160)
    sampler = DistributedSampler(data) if world > 1 else None
    loader = DataLoader(data, batch_size=16, sampler=sampler, shuffle=sampler is None, drop_last=True)

    model = Mixer().cuda()
    if world > 1:
        model = DistributedDataParallel(model, device_ids=[torch.cuda.current_device()])
    optimizer = make_optimizer(args.optimizer, model, args.lr)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    start = 0
    if args.resume:
        state = torch.load(args.resume, map_location="cuda")
        bare = model.module if world > 1 else model
        bare.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])
        start = state["epoch"] + 1

    for epoch in range(start, args.epochs):
        if sampler is not None:
            sampler.set_epoch(epoch)
        train_one_epoch(model, loader, optimizer, epoch, args.clip)
        scheduler.step()
        if not dist.is_initialized() or dist.get_rank() == 0:
            bare = model.module if world > 1 else model
            state = {
                "model": bare.state_dict(),
                "optimizer": optimizer.state_dict(),
                "scheduler": scheduler.state_dict(),
                "epoch": epoch,
            }
            torch.save(state, args.output)
    print("trained")
    if world > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
