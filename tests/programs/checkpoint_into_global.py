# distributed: converts
# same with W processes: yes
# amp: converts
import os

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

CHECKPOINT = "checkpoint.pt"
start_epoch = 0
model = None
optimizer = None


def build_model():
    return nn.Sequential(nn.Linear(4, 12), nn.Tanh(), nn.Linear(12, 2))


def load_checkpoint(path):
    global model, start_epoch
    state = torch.load(path, map_location="cpu")
    model.load_state_dict(state["model"])
    start_epoch = state["epoch"] + 1


def train():
    gen = torch.Generator().manual_seed(5)
    data = TensorDataset(torch.randn(64, 4, generator=gen), torch.randint(0, 2, (64,), generator=gen))
    loader = DataLoader(data, batch_size=8, shuffle=True)
    for epoch in range(start_epoch, start_epoch + 2):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()
        torch.save({"model": model.state_dict(), "epoch": epoch}, CHECKPOINT)
        print(epoch, loss.item())


if __name__ == "__main__":
    model = build_model()
    if os.path.exists(CHECKPOINT):
        load_checkpoint(CHECKPOINT)
    model = model.cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train()
