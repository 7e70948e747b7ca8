"""Small CNN on synthetic textures (CIFAR-like)."""
import argparse
import math

import torch
import torch_npu  # noqa: F401
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.npu.set_compile_mode(jit_compile=False)
torch.npu.config.allow_internal_format = False


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--lr", type=float, default=0.05)
    p.add_argument("--warmup", type=int, default=4)
    p.add_argument("--wd", type=float, default=5e-3)
    p.add_argument("--seed", type=int, default=7)
    return p.parse_args()


class Block(nn.Module):
    def __init__(self, cin, cout, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 3, stride=stride, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(cout)
        self.short = nn.Conv2d(cin, cout, 1, stride=stride, bias=False)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)) + self.short(x))


class Net(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.b1 = Block(8, 12, 2)
        self.b2 = Block(12, 16, 2)
        self.fc = nn.Linear(16, classes)

    def forward(self, x):
        x = self.b2(self.b1(F.relu(self.stem(x))))
        return self.fc(x.mean((2, 3)))


def make_data(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 4, (n,), generator=g)
    x = torch.randn(n, 3, 12, 12, generator=g)
    x[:, 0] += y.view(-1, 1, 1).float() * 0.4
    return TensorDataset(x, y)


def train_epoch(model, loader, optimizer, scheduler, epoch):
    model.train()
    total = 0.0
    for x, y in loader:
        x, y = x.npu(non_blocking=True), y.npu(non_blocking=True)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item()
    print(f"epoch {epoch} train loss {total / len(loader):.6f}")


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    correct = seen = 0
    for x, y in loader:
        x, y = x.npu(non_blocking=True), y.npu(non_blocking=True)
        correct += (model(x).argmax(1) == y).sum().item()
        seen += y.numel()
    return correct / seen


def main():
    args = parse_args()
    torch.manual_seed(args.seed)
    train_loader = DataLoader(make_data(112, 1), batch_size=args.batch_size, shuffle=True, drop_last=True,
                              pin_memory=True)
    val_loader = DataLoader(make_data(40, 2), batch_size=20, pin_memory=True)
    model = Net().npu()
    decay = [p for n, p in model.named_parameters() if p.ndim > 1]
    no_decay = [p for n, p in model.named_parameters() if p.ndim <= 1]
    optimizer = torch_npu.optim.NpuFusedSGD(
        [{"params": decay, "weight_decay": args.wd}, {"params": no_decay, "weight_decay": 0.0}],
        lr=args.lr, momentum=0.9, nesterov=True)
    total_steps = args.epochs * len(train_loader)
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda s: (s + 1) / args.warmup if s < args.warmup
        else 0.5 * (1 + math.cos(math.pi * (s - args.warmup) / (total_steps - args.warmup))))
    best = 0.0
    for epoch in range(args.epochs):
        train_epoch(model, train_loader, optimizer, scheduler, epoch)
        acc = evaluate(model, val_loader)
        print(f"epoch {epoch} val accuracy {acc:.4f}")
        if acc > best:
            best = acc
            torch.save(model.state_dict(), "best.pt")
    print(f"best accuracy {best:.4f}")


if __name__ == "__main__":
    main()
