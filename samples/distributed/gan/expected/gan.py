"""A small GAN on synthetic pictures."""

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
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--batch-size", type=int, default=16)
args = parser.parse_args()

torch.manual_seed(5)
device = torch.device("npu")

if __name__ == "__main__":
    torch.npu.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group(backend="hccl")

generator = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 16), nn.Tanh()).to(device)
generator = DistributedDataParallel(generator, device_ids=[torch.npu.current_device()])
discriminator = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.LeakyReLU(0.2), nn.Linear(32, 1)).to(device)
discriminator = DistributedDataParallel(discriminator, device_ids=[torch.npu.current_device()], broadcast_buffers=False)
criterion = nn.BCEWithLogitsLoss()
optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))


def train_epoch(epoch, loader):
    loader.sampler.set_epoch(epoch)
    for step, (real,) in enumerate(loader):
        real = real.to(device)
        noise = torch.randn(real.size(0), 8, device=device)
        fake = generator(noise)

        optimizer_d.zero_grad()
        ones = torch.ones(real.size(0), 1, device=device)
        loss_real = criterion(discriminator(real), ones)
        loss_fake = criterion(discriminator(fake.detach()), torch.zeros_like(ones))
        loss_d = loss_real + loss_fake
        loss_d.backward()
        optimizer_d.step()

        optimizer_g.zero_grad()
        loss_g = criterion(discriminator(fake), ones)
        loss_g.backward()
        optimizer_g.step()

        if step % 2 == 0:
            mean_loss_d = loss_d.detach().clone()
            dist.all_reduce(mean_loss_d)
            mean_loss_d /= dist.get_world_size()
            mean_loss_g = loss_g.detach().clone()
            dist.all_reduce(mean_loss_g)
            mean_loss_g /= dist.get_world_size()
            if dist.get_rank() == 0:
                print(f"[{epoch}/{args.epochs}][{step}/{len(loader)}] D {mean_loss_d.item():.4f} G {mean_loss_g.item():.4f}")


def main():
    pictures = torch.rand(64, 16) * 2 - 1
    train_set = TensorDataset(pictures)
    loader = DataLoader(train_set, batch_size=args.batch_size, sampler=DistributedSampler(train_set), drop_last=True)
    torch.manual_seed((torch.initial_seed() + dist.get_rank()) % 2**64)
    for epoch in range(args.epochs):
        train_epoch(epoch, loader)
        if dist.get_rank() == 0:
            torch.save({"g": generator.module.state_dict(), "d": discriminator.module.state_dict()}, f"gan_{epoch}.pt")


if __name__ == "__main__":
    main()

    dist.destroy_process_group()
