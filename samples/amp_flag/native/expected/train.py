"""Fits a small network; its options go from function to function."""

import argparse

import torch
import torch_npu  # noqa: F401
import torch.nn as nn

from options import add_options


def batches(args):
    x = torch.randn(200, 8)
    y = torch.sin(x.sum(dim=1, keepdim=True))
    for step in range(args.steps):
        rows = torch.arange(step * 16, step * 16 + 16) % 200
        yield x[rows].npu(), y[rows].npu()


def train(args, model):
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    scaler = torch.amp.GradScaler("npu", enabled=args.amp)
    for step, (inputs, targets) in enumerate(batches(args)):
        optimizer.zero_grad()
        with torch.autocast("npu", dtype=torch.float16, enabled=args.amp):
            loss = criterion(model(inputs), targets)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        print(f"step {step}: loss {loss.item():.4f}")


def main():
    parser = argparse.ArgumentParser()
    add_options(parser)
    parser.add_argument("--amp", action="store_true", help="mixed precision on the NPU")
    args = parser.parse_args()
    torch.manual_seed(0)
    train(args, nn.Sequential(nn.Linear(8, 32), nn.LayerNorm(32), nn.ReLU(), nn.Linear(32, 1)).npu())


if __name__ == "__main__":
    main()
