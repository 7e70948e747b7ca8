"""Numbers that the card draws: by seed and offset, in the right distribution; masks of dropout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch_npu
from torch.utils.checkpoint import checkpoint

#: What draws numbers, each call anew.
DRAWS: dict[str, Callable[[], Any]] = {
    "randn": lambda: torch.randn(1000, device="npu"),
    "rand": lambda: torch.rand(1000, device="npu"),
    "half": lambda: torch.rand(1000, device="npu", dtype=torch.float16),
    "randint": lambda: torch.randint(-5, 100, (1000,), device="npu"),
    "random_": lambda: torch.empty(1000, dtype=torch.int64, device="npu").random_(),
    "bernoulli": lambda: torch.bernoulli(torch.full((1000,), 0.5, device="npu")),
    "randperm": lambda: torch.randperm(1000, device="npu"),
    "multinomial": lambda: torch.multinomial(torch.ones(100, device="npu"), 50),
    "normal": lambda: torch.normal(torch.zeros(1000, device="npu"), torch.ones(1000, device="npu")),
    "exponential_": lambda: torch.empty(1000, device="npu").exponential_(),
    "dropout": lambda: torch.nn.functional.dropout(torch.ones(1000, device="npu"), 0.5),
    "rrelu": lambda: torch.nn.functional.rrelu(-torch.ones(1000, device="npu"), training=True),
}


def seeds_and_offsets() -> None:
    """The same seed draws the same numbers, a later call and another seed others; the state of the generator is all."""
    for name, draw in DRAWS.items():
        torch.npu.manual_seed(7)
        first, second = draw(), draw()
        torch.npu.manual_seed(7)
        state = torch.npu.get_rng_state()
        assert torch.equal(draw(), first), f"{name}: another draw of the same seed"
        assert not torch.equal(second, first), f"{name}: the same numbers twice"
        torch.npu.manual_seed(8)
        assert not torch.equal(draw(), first), f"{name}: the same numbers of another seed"
        torch.npu.set_rng_state(state)
        assert torch.equal(draw(), first), f"{name}: another draw of the same state"


def streams() -> None:
    """Calls one after the other are independent of each other."""
    torch.npu.manual_seed(0)
    drawn = torch.stack([torch.randn(10000, device="npu") for _ in range(8)]).cpu()
    apart = torch.corrcoef(drawn) - torch.eye(8)
    assert apart.abs().max() < 0.05, apart
    torch.manual_seed(3)
    before = torch.get_rng_state()
    torch.randn(10, device="npu")
    assert torch.equal(torch.get_rng_state(), before), "the CPU's generator moved"


def distributions() -> None:
    """Mean and spread of what is drawn."""
    torch.npu.manual_seed(0)
    size = 200_000
    for drawn, mean, spread in (
        (torch.randn(size, device="npu"), 0.0, 1.0),
        (torch.empty(size, device="npu").normal_(2, 3), 2.0, 3.0),
        (torch.rand(size, device="npu"), 0.5, 12**-0.5),
        (torch.empty(size, device="npu").uniform_(-1, 3), 1.0, 4 * 12**-0.5),
        (torch.randint(0, 11, (size,), device="npu").float(), 5.0, 10**0.5),
        (torch.bernoulli(torch.full((size,), 0.25, device="npu")), 0.25, 0.1875**0.5),
        (torch.empty(size, device="npu").exponential_(2), 0.5, 0.5),
    ):
        assert abs(drawn.mean().item() - mean) < 0.02 * (spread + 1), (mean, drawn.mean())
        assert abs(drawn.std().item() - spread) < 0.02 * (spread + 1), (spread, drawn.std())
    assert sorted(torch.randperm(500, device="npu").tolist()) == list(range(500))
    chosen = torch.multinomial(torch.tensor([[0.0, 1.0, 3.0]], device="npu").expand(2, 3), 20_000, replacement=True)
    assert chosen.min().item() == 1 and abs((chosen == 2).float().mean().item() - 0.75) < 0.02


def dropout() -> None:
    """What dropout leaves is scaled; its gradient goes through the same places; 1 in `probability` is dropped."""
    given = torch.rand(333, 7, device="npu") + 1
    given.requires_grad_()
    left = torch.nn.functional.dropout(given, 0.2)
    left.sum().backward()
    kept = left != 0
    assert abs(kept.float().mean().item() - 0.8) < 0.05
    torch.testing.assert_close(left, given * kept / 0.8)
    torch.testing.assert_close(given.grad, kept / 0.8)
    masks = [torch_npu._npu_dropout_gen_mask(given, [10_000], 0.3, 5, offset).cpu() for offset in (0, 0, 12)]
    assert torch.equal(masks[0], masks[1]) and not torch.equal(masks[0], masks[2])
    bits = sum(byte.bit_count() for byte in masks[0].tolist())
    assert abs(bits / 10_000 - 0.7) < 0.03, "a mask of dropout has one bit a number"


def computed_again() -> None:
    """A part of a model that is computed again for its gradient drops the same numbers."""
    layer = torch.nn.Sequential(torch.nn.Linear(9, 9), torch.nn.Dropout(0.4)).npu()
    given = torch.rand(50, 9, device="npu")
    gradients = []
    for again in (False, True):
        torch.npu.manual_seed(4)
        layer.zero_grad()
        left = checkpoint(layer, given, use_reentrant=False) if again else layer(given)
        torch.rand(5, device="npu")
        left.square().sum().backward()
        gradients.append([each.grad.clone() for each in layer.parameters()])
    assert all(map(torch.equal, *gradients))


seeds_and_offsets()
streams()
distributions()
dropout()
computed_again()
