"""With the CPU's generator in the place of the card's ("random": "cpu" in the emulator's configuration) the card draws
what the CPU draws, to the bit. Started without that, the program starts itself anew with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint

functional = torch.nn.functional


def attention(device: str, size: int) -> Any:
    """Gradients of attention with dropout, whose backward draws the mask of the forward anew, in a checkpoint or not;
    then one more number."""
    size = min(size, 33)
    leaves = [torch.randn(2, 2, size, 8).to(device).requires_grad_() for _ in range(3)]

    def attend(*given: Any) -> Any:
        once = functional.dropout(functional.scaled_dot_product_attention(*given, dropout_p=0.3), 0.5)
        return functional.scaled_dot_product_attention(once, *given[1:], dropout_p=0.2)

    for result in (attend(*leaves), checkpoint(attend, *leaves, use_reentrant=False)):
        result.square().sum().backward()
    return torch.cat([*(leaf.grad.flatten().cpu() for leaf in leaves), torch.rand(1, device=device).cpu()])


#: What draws on a device; large enough for the CPU's kernels of vectors, and small.
DRAWS: dict[str, Callable[[str, int], Any]] = {
    "randn": lambda device, size: torch.randn(size, device=device),
    "half": lambda device, size: torch.randn(size, device=device, dtype=torch.float16),
    "rand": lambda device, size: torch.rand(size, device=device),
    "normal_": lambda device, size: torch.empty(size, device=device).normal_(1, 2),
    "uniform_": lambda device, size: torch.empty(size, device=device).uniform_(-1, 2),
    "normal": lambda device, size: torch.normal(torch.zeros(size, device=device), torch.ones(size, device=device)),
    "randint": lambda device, size: torch.randint(-3, 1000, (size,), device=device),
    "random_": lambda device, size: torch.empty(size, dtype=torch.int64, device=device).random_(),
    "random_ float": lambda device, size: torch.empty(size, device=device).random_(),
    "bernoulli": lambda device, size: torch.bernoulli(torch.full((size,), 0.3, device=device)),
    "bernoulli_": lambda device, size: torch.empty(size, device=device).bernoulli_(0.3),
    "randperm": lambda device, size: torch.randperm(size, device=device),
    "multinomial": lambda device, size: torch.multinomial(torch.ones(size, device=device), 3),
    "multinomial again": lambda device, size: torch.multinomial(torch.ones(size, device=device), 99, True),
    "dropout": lambda device, size: functional.dropout(torch.ones(size, device=device), 0.3),
    "dropout half": lambda device, size: functional.dropout(torch.ones(size, device=device).half(), 0.1),
    "dropout1d": lambda device, size: functional.dropout1d(torch.ones(4, size, 3, device=device), 0.5),
    "alpha_dropout": lambda device, size: functional.alpha_dropout(torch.ones(size, device=device), 0.3, True),
    "own generator": lambda device, size: of_own_generator(device, size),
    "attention": attention,
    "rrelu": lambda device, size: functional.rrelu(-torch.ones(size, device=device), training=True),
}


def of_own_generator(device: str, size: int) -> Any:
    """What a generator of the program's own gives, draw after draw."""
    generator = torch.Generator(device).manual_seed(5)
    drawn = [torch.randn(size, generator=generator, device=device) for _ in range(2)]
    return torch.stack([*drawn, torch.rand(size, device=device)])


def compare() -> None:
    """Draw everything on both devices, twice."""
    for name, draw in DRAWS.items():
        for size in (5, 4099):
            torch.manual_seed(11)
            expected = [draw("cpu", size) for _ in range(2)]
            torch.manual_seed(11)
            found = [draw("npu", size).cpu() for _ in range(2)]
            near = partial(torch.allclose, rtol=1e-4, atol=1e-4) if draw is attention else torch.equal
            assert all(map(near, found, expected)), f"{name} of {size}"


with open(os.environ["TRANSPLT_EMULATOR"], encoding="utf-8") as file:
    configuration = json.load(file)
if configuration.get("random") == "cpu":
    compare()
else:
    with tempfile.NamedTemporaryFile("w", suffix=".json") as other:
        json.dump({**configuration, "random": "cpu"}, other)
        other.flush()
        subprocess.run([sys.executable, *sys.argv], env={**os.environ, "TRANSPLT_EMULATOR": other.name}, check=True)
