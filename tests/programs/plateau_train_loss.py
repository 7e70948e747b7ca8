# distributed: converts
# same with W processes: yes
# amp: converts
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Progress:
    """A small tqdm."""

    def __init__(self, iterable, desc=""):
        self.iterable, self.desc = iterable, desc

    def __iter__(self):
        for i, item in enumerate(self.iterable):
            sys.stderr.write(f"\r{self.desc} {i + 1}/{len(self.iterable)}")
            yield item
        sys.stderr.write("\n")

    def set_postfix(self, **kwargs):
        sys.stderr.write(str(kwargs))


x = torch.randn(64, 3, generator=torch.Generator().manual_seed(0))
loader = DataLoader(TensorDataset(x, x.pow(2).sum(1, keepdim=True)), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "min", factor=0.5, patience=0)
best, bad = float("inf"), 0
for epoch in range(4):
    train_loss = 0.0
    bar = Progress(loader, desc=f"epoch {epoch}")
    for xb, yb in bar:
        loss = nn.functional.mse_loss(model(xb.cuda()), yb.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        train_loss += loss.item()
        bar.set_postfix(loss=f"{loss.item():.4f}")
    train_loss /= len(loader)
    scheduler.step(train_loss)
    print(epoch, train_loss, optimizer.param_groups[0]["lr"])
    if train_loss < best - 1e-3:
        best, bad = train_loss, 0
        torch.save(model.state_dict(), "best.pt")
    else:
        bad += 1
        if bad > 1:
            break
