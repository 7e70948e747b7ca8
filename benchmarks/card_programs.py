"""Five small trainings of 200 steps; prints the CPU seconds of one. Usage: card_programs.py cpu|npu NAME."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import torch
from torch import nn

STEPS, WARM, CALLS = 200, 5, 5000


class Last(nn.Module):
    """An LSTM, and a linear layer over its last state."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(16, 32, batch_first=True), nn.Linear(32, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(x)[0][:, -1])


def _cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(32, 4),
    )  # fmt: skip


def _mlp() -> nn.Module:
    return nn.Sequential(*(layer for _ in range(20) for layer in (nn.Linear(16, 16), nn.ReLU())), nn.Linear(16, 4))


def _transformer() -> nn.Module:
    layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
    return nn.Sequential(nn.TransformerEncoder(layer, 3), nn.Flatten(), nn.Linear(64 * 16, 4))


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "cnn": (_cnn, (16, 3, 24, 24)), "mlp": (_mlp, (32, 16)), "transformer": (_transformer, (8, 16, 64)),
    "lstm": (Last, (16, 20, 16)),
}  # fmt: skip


def classifier(name: str, device: str) -> Callable[[], None]:
    """A step of a model that learns to name four classes of noise."""
    make, shape = MODELS[name]
    model = make().to(device)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    x, y = torch.randn(*shape).to(device), torch.randint(0, 4, shape[:1]).to(device)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step


def gan(device: str) -> Callable[[], None]:
    """A step of a generator and of its judge."""
    make = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.Tanh()).to(device)
    judge = nn.Sequential(nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1)).to(device)
    first, second = torch.optim.Adam(make.parameters(), 2e-4), torch.optim.Adam(judge.parameters(), 2e-4)
    real, loss = torch.randn(64, 64).to(device), nn.BCEWithLogitsLoss()
    one, zero = torch.ones(64, 1).to(device), torch.zeros(64, 1).to(device)

    def step() -> None:
        made = make(torch.randn(64, 16, device=device))
        second.zero_grad()
        (loss(judge(real), one) + loss(judge(made.detach()), zero)).backward()
        second.step()
        first.zero_grad()
        loss(judge(made), one).backward()
        first.step()

    return step


def calls(device: str) -> None:
    """Prints the microseconds of single calls, in the order of `card_speed.CALLS`."""
    a, b = torch.randn(4, 4).to(device), torch.randn(4, 4).to(device)
    for call in (
        lambda: a + b, lambda: a * b, lambda: torch.relu(a), lambda: a @ b, lambda: torch.empty(4, 4, device=device),
        lambda: a[0, 0].item(),
    ):  # fmt: skip
        for _ in range(20):
            call()
        begun = time.process_time()
        for _ in range(CALLS):
            call()
        print((time.process_time() - begun) / CALLS * 1e6)


def main(device: str, name: str) -> None:
    """Prints the seconds of a program, or those of single calls."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    if name == "calls":
        calls(device)
        return
    step = gan(device) if name == "gan" else classifier(name, device)
    for _ in range(WARM):
        step()
    begun = time.process_time()
    for _ in range(STEPS):
        step()
    print(time.process_time() - begun)


if __name__ == "__main__":
    main(*sys.argv[1:])
