"""Training with CTC: convolutions over time, a GRU, labels without places."""

from __future__ import annotations

from functools import partial

import torch
from both import assert_same
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
INPUTS, TARGETS = [11, 10, 8], [4, 3, 2]


class Recognizer(nn.Module):
    """Logarithms of the chances of 6 letters at each step: time, batch, letter."""

    def __init__(self) -> None:
        super().__init__()
        self.front = nn.Sequential(nn.Conv1d(5, 8, 3, stride=2, padding=1), nn.GELU(approximate="tanh"))
        self.layer = nn.GRU(8, 10, bidirectional=True)
        self.norm, self.head = nn.LayerNorm(20), nn.Linear(20, 6)

    def forward(self, sound: torch.Tensor) -> torch.Tensor:
        steps = self.front(sound).permute(2, 0, 1)
        return self.head(self.norm(self.layer(steps)[0])).log_softmax(-1)


def loss(model: nn.Module, sound: torch.Tensor, letters: torch.Tensor) -> torch.Tensor:
    lengths = torch.tensor(INPUTS), torch.tensor(TARGETS)
    chances = model(sound)
    joined = torch.cat([row[:length] for row, length in zip(letters, TARGETS, strict=True)])
    padded = functional.ctc_loss(chances, letters, *lengths, zero_infinity=True)
    return padded + functional.ctc_loss(chances, joined, *lengths, reduction="sum")


batches = [(torch.randn(3, 5, 22), torch.randint(1, 6, (3, 4))) for _ in range(3)]
assert_same("CTC", Recognizer(), batches, loss, partial(torch.optim.Adam, lr=0.02))
