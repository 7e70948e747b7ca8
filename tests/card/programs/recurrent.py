"""Recurrent layers: LSTM over packed sequences, GRU, plain ones, and their cells."""

from __future__ import annotations

from functools import partial

import torch
from both import assert_same
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

torch.manual_seed(0)
LENGTHS = [7, 5, 5, 2]


class Packed(nn.Module):
    """Padding that is packed away, and comes back as zeros."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(6, 8, batch_first=True)
        self.head = nn.Linear(8, 3)

    def forward(self, steps: torch.Tensor) -> torch.Tensor:
        packed, (last, _) = self.layer(pack_padded_sequence(steps, LENGTHS, batch_first=True))
        every, lengths = pad_packed_sequence(packed, batch_first=True)
        assert lengths.tolist() == LENGTHS
        assert not every[3, 2:].any()
        return self.head(every.sum(1) + last[0])


class Deep(nn.Module):
    """Two layers in both directions, packed: torch_npu goes through the older interface of operators. It has no
    gradient of the last state of a packed reverse direction, so the loss does without."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(6, 8, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(16, 3)

    def forward(self, steps: torch.Tensor) -> torch.Tensor:
        packed, _ = self.layer(pack_padded_sequence(steps, LENGTHS, batch_first=True))
        return self.head(pad_packed_sequence(packed, batch_first=True)[0].sum(1) + self.layer(steps)[0].mean(1))


class Layers(nn.Module):
    """Two layers of a GRU in both directions over a plain one."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 6)
        self.lower = nn.RNN(6, 6)
        self.layer = nn.GRU(6, 8, num_layers=2, bidirectional=True)
        self.head = nn.Linear(16, 3)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        every, last = self.layer(self.lower(self.embedding(words))[0])
        return self.head(every.mean(0)) + last.mean()


class Cells(nn.Module):
    """Step by step."""

    def __init__(self) -> None:
        super().__init__()
        self.long, self.gated, self.head = nn.LSTMCell(6, 8), nn.GRUCell(8, 8), nn.Linear(8, 3)

    def forward(self, steps: torch.Tensor) -> torch.Tensor:
        hidden = cell = gated = steps.new_zeros(steps.shape[0], 8)
        for step in steps.unbind(1):
            hidden, cell = self.long(step, (hidden, cell))
            gated = self.gated(hidden, gated)
        return self.head(gated + cell)


def loss(model: nn.Module, steps: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(model(steps), labels)


adam = partial(torch.optim.Adam, lr=0.05)
labels = torch.tensor([0, 1, 2, 1])
sequences = [(torch.randn(4, 7, 6), labels) for _ in range(3)]
assert_same("packed LSTM", Packed(), sequences, loss, adam)
assert_same("deep LSTM", Deep(), sequences, loss, adam)
assert_same("GRU", Layers(), [(torch.randint(0, 20, (7, 4)), labels) for _ in range(3)], loss, adam)
assert_same("cells", Cells(), sequences, loss, adam)

one, half = nn.LSTM(6, 8), torch.randn(5, 2, 6).half()
expected, found = one(half.float())[0], one.npu().half()(half.npu())[0].float().cpu()
torch.testing.assert_close(found, expected, rtol=1e-2, atol=1e-2)
