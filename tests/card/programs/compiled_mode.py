"""A training with `jit_compile=True`, set at its begin: all its operators are called by their names (aclop)."""

from __future__ import annotations

from typing import Any

import torch
from beside import compare, raises, same
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    """A convolution net and a transformer layer, as a training has them."""

    def __init__(self) -> None:
        super().__init__()
        self.image = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 8, 3), nn.Tanh(),
            nn.AvgPool2d(2), nn.Flatten(),
        )  # fmt: skip
        self.one, self.norm, self.two = nn.Linear(8, 16), nn.LayerNorm(16), nn.Linear(16, 5)

    def forward(self, x: Any) -> Any:
        rows = self.norm(F.relu(self.one(self.image(x))))
        scores = torch.softmax(rows @ rows.t() * 0.1, -1)
        return self.two(torch.sigmoid(scores @ rows) * rows.masked_fill(rows < 0, 0.5))


def check_training() -> None:
    """Ten steps of SGD beside the CPU."""
    here, data, target = Net(), torch.randn(6, 1, 8, 8), torch.randint(0, 5, (6,))
    there = Net()
    there.load_state_dict(here.state_dict())
    there = there.npu()
    losses: list[list[float]] = []
    for net, x, y in ((here, data, target), (there, data.npu(), target.npu())):
        optimizer = torch.optim.SGD(net.parameters(), 0.1, 0.9, foreach=False)
        losses.append([])
        for _ in range(10):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.item())
    assert max(abs(a - b) for a, b in zip(*losses, strict=True)) < 1e-3, losses
    assert losses[0][-1] < losses[0][0]


def check_operators() -> None:
    x = torch.randn(4, 6)
    same(x.npu().topk(2)[0], x.topk(2)[0])
    same(x.npu()[torch.tensor([0, 2]).npu()], x[[0, 2]])
    same(torch.cat([x.npu(), x.npu()], 1).t().contiguous(), torch.cat([x, x], 1).t())
    raises("SoftShrink is not emulated", lambda: F.softshrink(x.npu()))
    y, weight = torch.randn(5, 8), torch.rand(8)
    compare(lambda x, w: F.layer_norm(x, (8,), w), lambda x, w: F.layer_norm(x, (8,), w), [y, weight], torch.float32)
    compare(torch.sigmoid, torch.sigmoid, [y], torch.float16)
    compare(lambda x: F.gelu(x), lambda x: F.gelu(x, approximate="tanh"), [y], torch.float32)
    compare(F.silu, F.silu, [y], torch.float32)
    compare(torch.mm, torch.mm, [torch.randn(3, 4), torch.randn(4, 5)], torch.float32)
    compare(
        lambda x, w, b: F.conv2d(x, w, b, 2, 1), lambda x, w, b: F.conv2d(x, w, b, 2, 1),
        [torch.randn(2, 3, 7, 7), torch.randn(4, 3, 3, 3), torch.randn(4)], torch.float32,
    )  # fmt: skip
    for function in (
        lambda x: x.clamp(-0.5, 0.5), lambda x: x.flip(0), lambda x: x.roll(1, 0), torch.norm, lambda x: x.norm(1, 1),
        lambda x: x.cumsum(1), torch.tril,
        lambda x: torch.where(x > 0, x, -x), lambda x: torch.stack([x, x]), lambda x: x.amax(1),
    ):  # fmt: skip
        same(function(y.npu()), function(y))
    dropped = F.dropout(torch.ones(64, 64).npu(), 0.25).cpu()
    assert abs((dropped != 0).float().mean() - 0.75) < 0.03


if __name__ == "__main__":
    torch.npu.set_compile_mode(jit_compile=True)
    torch.manual_seed(0)
    for name, check in list(globals().items()):
        if name.startswith("check_"):
            check()
            print(name, "ok")
