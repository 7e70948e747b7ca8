"""A class that trains a model, with the options of the command line in reach."""

import argparse
import os

import torch
import torch_npu  # noqa: F401
import torch.nn as nn
from apex import amp


class Trainer:
    def __init__(self, model, args):
        self.args = args
        self.model = model.npu()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=args.lr, momentum=0.9)
        self.model, self.optimizer = amp.initialize(
            self.model, self.optimizer,
            enabled=args.amp, opt_level=args.opt_level, loss_scale=args.loss_scale, combine_grad=True,
        )
        self.step = 0
        if os.path.exists(args.checkpoint):
            state = torch.load(args.checkpoint, map_location="npu")
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            if args.amp and state.get("amp"):
                amp.load_state_dict(state["amp"])
            self.step = state["step"]

    def fit(self, x, y):
        criterion = nn.MSELoss()
        for step in range(self.step, self.step + self.args.steps):
            rows = torch.arange(step * 16, step * 16 + 16) % len(x)
            loss = criterion(self.model(x[rows].npu()), y[rows].npu())
            self.optimizer.zero_grad()
            with amp.scale_loss(loss, self.optimizer) as scaled_loss:
                scaled_loss.backward()
            self.optimizer.step()
            print(f"step {step}: loss {loss.item():.4f}")
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "amp": amp.state_dict() if self.args.amp else None,
            "step": self.step + self.args.steps,
        }
        torch.save(state, self.args.checkpoint)


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--checkpoint", default="last.pt")
    parser.add_argument("--amp", action="store_true", help="mixed precision on the NPU")
    parser.add_argument("--opt-level", default="O2", help="O1 or O2 of apex")
    parser.add_argument("--loss-scale", default="1024", help="a number, or dynamic")
    return parser.parse_args()


if __name__ == "__main__":
    args = parse_args()
    torch.manual_seed(0)
    x = torch.randn(200, 8)
    network = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
    Trainer(network, args).fit(x, x.mean(dim=1, keepdim=True))
