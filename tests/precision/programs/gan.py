"""Two networks against each other, each with an Adam of its own."""

import torch
from torch import nn

torch.manual_seed(5)
device = torch.device("cuda")

maker = nn.Sequential(
    nn.Linear(6, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 16), nn.Tanh()
).to(device)
judge = nn.Sequential(
    nn.Linear(16, 20), nn.LeakyReLU(0.2), nn.Linear(20, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1)
).to(device)
makes = torch.optim.Adam(maker.parameters(), lr=2e-3, betas=(0.5, 0.999))
judges = torch.optim.Adam(judge.parameters(), lr=2e-3, betas=(0.5, 0.999))
criterion = nn.BCEWithLogitsLoss()
real = torch.randn(3, 8, 16).tanh()
noise = torch.randn(3, 8, 6)
for step in range(3):
    true, drawn = real[step].to(device), noise[step].to(device)
    ones, zeros = torch.ones(8, 1, device=device), torch.zeros(8, 1, device=device)
    judges.zero_grad()
    made = maker(drawn)
    judged = criterion(judge(true), ones) + criterion(judge(made.detach()), zeros)
    judged.backward()
    judges.step()
    makes.zero_grad()
    fooled = criterion(judge(made), ones)
    fooled.backward()
    makes.step()
    print(f"step {step + 1} loss_D {judged.item():.6f} loss_G {fooled.item():.6f}", flush=True)
