"""Classifies digits: functions, and a main that calls them."""

import argparse
import contextlib
import logging
import os
import sys

import torch
import torch_npu  # noqa: F401
import torch.nn as nn
import torch.nn.functional as F

import npu_port
from data import get_loaders

logger = logging.getLogger(__name__)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.1))
        self.head = nn.Linear(8 * 4 * 4, 10)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))

    def describe(self):
        return f"{sum(p.numel() for p in self.parameters())} parameters"


def train(args, model, loader, optimizer, scaler, epoch):
    model.train()
    for i, (images, labels) in enumerate(loader):
        images = images.npu(non_blocking=True)
        labels = labels.npu(non_blocking=True)
        with contextlib.nullcontext() if (i + 1) % args.accumulate == 0 else model.no_sync():
            with torch.npu.amp.autocast(enabled=args.amp):
                loss = F.cross_entropy(model(images), labels) / args.accumulate
            scaler.scale(loss).backward()
        if (i + 1) % args.accumulate == 0:
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        if i % args.log_interval == 0:
            mean_loss = npu_port.mean_over_ranks(loss)
            if npu_port.is_first():
                logger.info("epoch %d [%d/%d] loss %.4f", epoch, i, len(loader), mean_loss.item() * args.accumulate)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    correct = 0
    for images, labels in loader:
        correct += (model(images.npu()).argmax(1).cpu() == labels).sum().item()
    return correct / len(loader.dataset)


def save(model, optimizer, epoch, path):
    if not os.path.exists(os.path.dirname(path)):
        os.makedirs(os.path.dirname(path), exist_ok=True)
    if npu_port.is_first():
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--accumulate", type=int, default=2)
    parser.add_argument("--log-interval", type=int, default=2)
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--resume")
    parser.add_argument("--out", default="run")
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)

    torch.manual_seed(1)
    train_loader, test_loader = get_loaders(args.batch_size)
    model = Net().npu()
    if args.resume:
        model.load_state_dict(torch.load(args.resume, map_location="npu")["model"])
    model = npu_port.wrap(model)
    if npu_port.is_first():
        print(model.module.describe())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("npu", enabled=args.amp)

    best = 0.0
    npu_port.own_draws()
    for epoch in range(args.epochs):
        train(args, model, train_loader, optimizer, scaler, epoch)
        accuracy = evaluate(model, test_loader)
        if npu_port.is_first():
            print(f"epoch {epoch}: accuracy {accuracy:.3f}")
        if accuracy >= best:
            best = accuracy
            save(model.module, optimizer, epoch, os.path.join(args.out, "best.pt"))


if __name__ == "__main__":
    npu_port.start()
    main()
