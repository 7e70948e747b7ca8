# distributed: refused or converts (the models come back in a dict)
# same with W processes: yes
# amp: converts
# apex: refused (which model is trained cannot be seen where the optimizer is used)
# apex O1: converts
# run: --batch {batch} --fine
import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--fine", action="store_true")
args = parser.parse_args()
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x):
        return self.layers(x)


def create(args):
    model = Field().to(device)
    grad_vars = list(model.parameters())
    model_fine = None
    if args.fine:
        model_fine = Field().to(device)
        grad_vars += list(model_fine.parameters())
    optimizer = torch.optim.Adam(params=grad_vars, lr=1e-2, betas=(0.9, 0.999))
    return {"coarse": model, "fine": model_fine}, optimizer


def render(x, coarse, fine):
    out = coarse(x)
    return (out + fine(x)) / 2 if fine is not None else out


def train():
    x = torch.randn(64, 3, generator=torch.Generator().manual_seed(1))
    loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=args.batch, shuffle=True)
    networks, optimizer = create(args)
    for epoch in range(3):
        for points, target in loader:
            points, target = points.to(device), target.to(device)
            optimizer.zero_grad()
            loss = torch.mean((render(points, **networks) - target) ** 2)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    train()
