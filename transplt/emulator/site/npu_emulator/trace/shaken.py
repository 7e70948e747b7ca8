"""The program with its parameters off by a few roundings, again after every step: what becomes of so little."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..config import config
from .figures import host_alias
from .log import quiet

_generator: Any = None


def shake(parameters: Sequence[Any]) -> None:
    """Change each element of the tensors by up to the share that the settings give; without one do nothing."""
    global _generator
    amount = config.trace["shake"] if config.trace else 0.0
    if not amount:
        return
    if _generator is None:  # of its own: the numbers that the program draws stay as they are
        _generator = torch._C.Generator()
        _generator.manual_seed(15)
    with quiet(), torch.no_grad():
        for parameter in parameters:
            plain = host_alias(parameter)
            if plain is not None and plain.layout is torch.strided and plain.is_floating_point():
                drawn = torch.empty(plain.shape, dtype=plain.dtype).uniform_(-amount, amount, generator=_generator)
                plain.addcmul_(plain, drawn)
