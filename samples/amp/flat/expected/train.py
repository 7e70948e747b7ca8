"""Fits a small network, statement by statement."""

import torch
import torch_npu  # noqa: F401
import torch.nn as nn

torch.manual_seed(0)
device = torch.device("npu" if torch.npu.is_available() else "cpu")

x = torch.randn(200, 8)
y = torch.sin(x.sum(dim=1, keepdim=True))

model = nn.Sequential(nn.Linear(8, 32), nn.LayerNorm(32), nn.ReLU(), nn.Linear(32, 1)).to(device)
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
scaler = torch.amp.GradScaler("npu")

for step in range(50):
    rows = torch.arange(step * 16, step * 16 + 16) % 200
    inputs, targets = x[rows].to(device), y[rows].to(device)
    optimizer.zero_grad()
    with torch.autocast("npu", dtype=torch.float16):
        outputs = model(inputs)
        loss = criterion(outputs, targets)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    print(f"step {step}: loss {loss.item():.4f}")

torch.save(model.state_dict(), "model.pt")
