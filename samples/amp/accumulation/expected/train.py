"""Accumulates the gradients of several small batches for each step."""

import argparse

import torch
import torch_npu  # noqa: F401
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--accumulate", type=int, default=4)
    args = parser.parse_args()

    torch.manual_seed(2)
    x = torch.randn(160, 10)
    y = (x[:, :1] * x[:, 1:2] > 0).float()
    loader = DataLoader(TensorDataset(x, y), batch_size=8)

    model = nn.Sequential(nn.Linear(10, 64), nn.GELU(), nn.Linear(64, 1)).npu()
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scaler = torch.amp.GradScaler("npu")

    for epoch in range(args.epochs):
        for i, (inputs, labels) in enumerate(loader):
            with torch.autocast("npu", dtype=torch.float16):
                loss = criterion(model(inputs.npu()), labels.npu()) / args.accumulate
            scaler.scale(loss).backward()
            if (i + 1) % args.accumulate == 0:
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(model.parameters(), 5.0)
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
                print(f"epoch {epoch} step {i // args.accumulate}: loss {loss.item() * args.accumulate:.4f}")


if __name__ == "__main__":
    main()
