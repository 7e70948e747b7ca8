"""A small GAN on synthetic pictures."""

import argparse

import torch
import torch_npu  # noqa: F401
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=7)
parser.add_argument("--batch-size", type=int, default=16)
args = parser.parse_args()

torch.manual_seed(5)
device = torch.device("npu")

netG = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 16), nn.Tanh()).to(device)
netD = nn.Sequential(nn.Linear(16, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1)).to(device)
criterion = nn.BCEWithLogitsLoss()
optimizerD = torch.optim.Adam(netD.parameters(), lr=2e-3, betas=(0.5, 0.999))
scaler_d = torch.amp.GradScaler("npu")
optimizerG = torch.optim.Adam(netG.parameters(), lr=2e-3, betas=(0.5, 0.999))
scaler_g = torch.amp.GradScaler("npu")

pictures = torch.rand(128, 16) * 0.5 + 0.5
loader = DataLoader(TensorDataset(pictures), batch_size=args.batch_size, shuffle=True, drop_last=True)

for epoch in range(args.epochs):
    for i, (real,) in enumerate(loader):
        # (1) update D: maximise log(D(x)) + log(1 - D(G(z)))
        netD.zero_grad()
        real = real.to(device)
        label = torch.full((real.size(0), 1), 1.0, device=device)
        with torch.autocast("npu", dtype=torch.float16):
            output = netD(real)
            errD_real = criterion(output, label)
        scaler_d.scale(errD_real).backward()

        noise = torch.randn(real.size(0), 8, device=device)
        with torch.autocast("npu", dtype=torch.float16):
            fake = netG(noise)
            label.fill_(0.0)
            output = netD(fake.detach())
            errD_fake = criterion(output, label)
        scaler_d.scale(errD_fake).backward()
        errD = errD_real + errD_fake
        scaler_d.step(optimizerD)
        scaler_d.update()

        # (2) update G: maximise log(D(G(z)))
        netG.zero_grad()
        label.fill_(1.0)
        with torch.autocast("npu", dtype=torch.float16):
            output = netD(fake)
            errG = criterion(output, label)
        scaler_g.scale(errG).backward()
        scaler_g.step(optimizerG)
        scaler_g.update()

        print(f"[{epoch}/{args.epochs}][{i}/{len(loader)}] D {errD.item():.4f} G {errG.item():.4f}")

    torch.save(
        {
            "epoch": epoch,
            "optimizerD": optimizerD.state_dict(),
            "optimizerG": optimizerG.state_dict(),
            "scaler_d": scaler_d.state_dict(),
            "scaler_g": scaler_g.state_dict(),
        },
        f"gan_{epoch}.pt",
    )
