"""Fits a line on one GPU, statement by statement."""

import argparse

import torch
import torch_npu  # noqa: F401
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

import npu_port

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--batch-size", type=int, default=16)
parser.add_argument("--log-every", type=int, default=2)
args = parser.parse_args()

torch.manual_seed(0)
device = torch.device("npu" if torch.npu.is_available() else "cpu")

x = torch.randn(128, 4)
y = x @ torch.tensor([[1.0], [-2.0], [3.0], [0.5]])

npu_port.start()

loader = DataLoader(TensorDataset(x, y), batch_size=args.batch_size, shuffle=True)
loader = npu_port.shard(loader)

model = nn.Linear(4, 1)
model = npu_port.wrap(model.to(npu_port.card()))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

npu_port.own_draws()
for epoch in range(args.epochs):
    total = 0.0
    for step, (inputs, targets) in enumerate(loader):
        inputs, targets = inputs.to(device), targets.to(device)
        loss = nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean_loss = npu_port.mean_over_ranks(loss)
        total += mean_loss.item()
        if step % args.log_every == 0 and npu_port.is_first():
            print(f"epoch {epoch} step {step}: loss {mean_loss.item():.4f}")
    if npu_port.is_first():
        print(f"epoch {epoch}: mean loss {total / len(loader):.4f}")

if npu_port.is_first():
    torch.save(model.module.state_dict(), "line.pt")
