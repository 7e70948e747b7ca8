"""A small GAN on synthetic pictures."""

import argparse

import torch
import torch_npu  # noqa: F401
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

import npu_port

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--batch-size", type=int, default=16)
args = parser.parse_args()

torch.manual_seed(5)
device = torch.device("npu")

if __name__ == "__main__":
    npu_port.start()

generator = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 16), nn.Tanh()).to(device)
generator = npu_port.wrap(generator)
discriminator = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.LeakyReLU(0.2), nn.Linear(32, 1)).to(device)
discriminator = npu_port.wrap(discriminator, broadcast_buffers=False)
criterion = nn.BCEWithLogitsLoss()
optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))


def train_epoch(epoch, loader):
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
            mean_loss_d = npu_port.mean_over_ranks(loss_d)
            mean_loss_g = npu_port.mean_over_ranks(loss_g)
            if npu_port.is_first():
                print(f"[{epoch}/{args.epochs}][{step}/{len(loader)}] D {mean_loss_d.item():.4f} G {mean_loss_g.item():.4f}")


def main():
    pictures = torch.rand(64, 16) * 2 - 1
    loader = DataLoader(TensorDataset(pictures), batch_size=args.batch_size, shuffle=True, drop_last=True)
    loader = npu_port.shard(loader)
    npu_port.own_draws()
    for epoch in range(args.epochs):
        train_epoch(epoch, loader)
        if npu_port.is_first():
            torch.save({"g": generator.module.state_dict(), "d": discriminator.module.state_dict()}, f"gan_{epoch}.pt")


if __name__ == "__main__":
    main()
