"""Fits a small network, statement by statement."""

import torch
import torch.nn as nn

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

x = torch.randn(200, 8)
y = torch.sin(x.sum(dim=1, keepdim=True))

model = nn.Sequential(nn.Linear(8, 32), nn.LayerNorm(32), nn.ReLU(), nn.Linear(32, 1)).to(device)
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for step in range(50):
    rows = torch.arange(step * 16, step * 16 + 16) % 200
    inputs, targets = x[rows].to(device), y[rows].to(device)
    optimizer.zero_grad()
    outputs = model(inputs)
    loss = criterion(outputs, targets)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(f"step {step}: loss {loss.item():.4f}")

torch.save(model.state_dict(), "model.pt")
