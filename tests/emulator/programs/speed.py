"""Prints the time of one training step in ms, per model. usage: speed.py cpu|npu"""

import sys
import time

import torch
from torch import nn

device = sys.argv[1]
torch.set_num_threads(1)


def measure(name, model, shape, steps):
    """The best of seven means over `steps` steps."""
    torch.manual_seed(0)
    model = model.to(device)
    x = torch.randn(*shape).to(device)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)

    def step():
        optimizer.zero_grad()
        out = model(x)
        out = out[0] if isinstance(out, tuple) else out
        out.square().mean().backward()
        optimizer.step()

    for _ in range(3):
        step()
    best = float("inf")
    for _ in range(7):
        begun = time.perf_counter()
        for _ in range(steps):
            step()
        best = min(best, (time.perf_counter() - begun) / steps)
    print(name, round(best * 1e3, 3), flush=True)


layer = nn.TransformerEncoderLayer(128, 4, 256, dropout=0.0, batch_first=True)
measure("transformer", nn.TransformerEncoder(layer, 4), (8, 32, 128), 3)
measure("mlp", nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)), (8, 16), 20)
cnn = nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(5408, 10))
measure("cnn", cnn, (16, 1, 28, 28), 3)
measure("lstm", nn.LSTM(64, 64, 2), (35, 20, 64), 1)
