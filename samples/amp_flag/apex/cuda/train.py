"""A class that trains a model, with the options of the command line in reach."""

import argparse
import os

import torch
import torch.nn as nn


class Trainer:
    def __init__(self, model, args):
        self.args = args
        self.model = model.cuda()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=args.lr, momentum=0.9)
        self.step = 0
        if os.path.exists(args.checkpoint):
            state = torch.load(args.checkpoint, map_location="cuda")
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.step = state["step"]

    def fit(self, x, y):
        criterion = nn.MSELoss()
        for step in range(self.step, self.step + self.args.steps):
            rows = torch.arange(step * 16, step * 16 + 16) % len(x)
            loss = criterion(self.model(x[rows].cuda()), y[rows].cuda())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            print(f"step {step}: loss {loss.item():.4f}")
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "step": self.step + self.args.steps,
        }
        torch.save(state, self.args.checkpoint)


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--checkpoint", default="last.pt")
    return parser.parse_args()


if __name__ == "__main__":
    args = parse_args()
    torch.manual_seed(0)
    x = torch.randn(200, 8)
    network = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
    Trainer(network, args).fit(x, x.mean(dim=1, keepdim=True))
