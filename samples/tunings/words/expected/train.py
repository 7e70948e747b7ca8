"""Trains a small model of words on one card or several: torchrun --nproc_per_node=2 train.py."""

import argparse
import os

import torch
import torch_npu  # noqa: F401
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from words.data import Sentences
from words.meters import Meter
from words.model import WordModel


def train_one_epoch(model, loader, optimizer, device, epoch):
    model.train()
    meter = Meter()
    for step, (words, targets) in enumerate(loader):
        words = words.to(device, non_blocking=True)
        targets = targets.to(device, non_blocking=True)
        loss = F.cross_entropy(model(words).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        meter.update(loss.item(), len(words))
        if dist.get_rank() == 0:
            print(f"loss {epoch} {step} {loss.item():.9g}")
    return meter


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    correct = total = 0
    for words, targets in loader:
        words, targets = words.to(device, non_blocking=True), targets.to(device, non_blocking=True)
        correct += (model(words).argmax(-1) == targets).sum().item()
        total += targets.numel()
    return correct / total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--samples", type=int, default=64)
    parser.add_argument("--count", action="store_true", help="sum the meters over the ranks")
    args = parser.parse_args()

    rank = int(os.environ["LOCAL_RANK"])
    torch.npu.set_device(rank)
    device = torch.device("npu", rank)
    dist.init_process_group(backend="hccl")

    torch.manual_seed(0)
    train_set = Sentences(args.samples)
    valid_set = Sentences(25)
    sampler = DistributedSampler(train_set)
    train_loader = DataLoader(train_set, batch_size=8, sampler=sampler, num_workers=args.workers, pin_memory=True,
                              persistent_workers=args.workers > 0, drop_last=True)
    valid_loader = DataLoader(valid_set, batch_size=10, pin_memory=True)

    model = WordModel(words=20, width=16, length=6).to(device)
    model = DistributedDataParallel(model, device_ids=[rank], forward_sync_buffers=False, gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        meter = train_one_epoch(model, train_loader, optimizer, device, epoch)
        if args.count:
            count, mean = meter.synchronize()
            if rank == 0:
                print(f"mean {epoch} {count:.0f} {mean:.6f}")
        correct = evaluate(model.module, valid_loader, device)
        if rank == 0:
            print(f"correct {epoch} {correct:.6f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
