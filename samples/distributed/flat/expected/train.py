"""Fits a line on one GPU, statement by statement."""

import argparse
import os

import torch
import torch_npu  # noqa: F401
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.distributed import DistributedSampler

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--batch-size", type=int, default=16)
parser.add_argument("--log-every", type=int, default=2)
args = parser.parse_args()

torch.manual_seed(0)
device = torch.device("npu" if torch.npu.is_available() else "cpu")

x = torch.randn(128, 4)
y = x @ torch.tensor([[1.0], [-2.0], [3.0], [0.5]])

torch.npu.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group(backend="hccl")

train_set = TensorDataset(x, y)
loader = DataLoader(train_set, batch_size=args.batch_size, sampler=DistributedSampler(train_set))

model = nn.Linear(4, 1)
model = DistributedDataParallel(model.npu(), device_ids=[torch.npu.current_device()])
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

torch.manual_seed((torch.initial_seed() + dist.get_rank()) % 2**64)
for epoch in range(args.epochs):
    loader.sampler.set_epoch(epoch)
    total = 0.0
    for step, (inputs, targets) in enumerate(loader):
        inputs, targets = inputs.to(device), targets.to(device)
        loss = nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean_loss = loss.detach().clone()
        dist.all_reduce(mean_loss)
        mean_loss /= dist.get_world_size()
        total += mean_loss.item()
        if step % args.log_every == 0 and dist.get_rank() == 0:
            print(f"epoch {epoch} step {step}: loss {mean_loss.item():.4f}")
    if dist.get_rank() == 0:
        print(f"epoch {epoch}: mean loss {total / len(loader):.4f}")

if dist.get_rank() == 0:
    torch.save(model.module.state_dict(), "line.pt")

dist.destroy_process_group()
