"""Fits a small convolutional network, statement by statement."""

import torch
import torch.nn as nn

torch.manual_seed(0)
device = torch.device("cuda")

pictures = torch.randn(256, 1, 8, 8)
labels = (pictures.mean(dim=(1, 2, 3)) > 0).long()

model = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1),
    nn.BatchNorm2d(8),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(8 * 64, 2),
)
model.to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 30, gamma=0.5)

for step in range(50):
    rows = torch.arange(step * 32, step * 32 + 32) % 256
    inputs, targets = pictures[rows].to(device), labels[rows].to(device)
    optimizer.zero_grad(set_to_none=True)
    loss = criterion(model(inputs), targets)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    scheduler.step()
    print(f"step {step}: loss {loss.item():.4f}")

torch.save(model.state_dict(), "model.pt")
