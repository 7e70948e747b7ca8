"""The program with its parameters off by a few roundings, again after every step: what becomes of so little."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..config import config
from .figures import host_alias
from .log import quiet

_generator: Any = None
_SINGLE = torch.finfo(torch.float32).eps


def install() -> None:
    """Let every second of such runs add its sums in another order, too: with the threads of two processors."""
    if config.trace and config.trace["shake"] and config.trace["again"] % 2:
        torch.set_num_threads(2)


def shake(parameters: Sequence[Any]) -> None:
    """Change each element of the tensors by up to the share that the settings give, which is one of float32; without
    one do nothing."""
    global _generator
    if not config.trace or not config.trace["shake"]:
        return
    amount = config.trace["shake"]
    if _generator is None:  # of its own: the numbers that the program draws stay as they are
        _generator = torch._C.Generator()
        _generator.manual_seed(15 + config.trace["again"])
    with quiet(), torch.no_grad():
        for parameter in parameters:
            plain = host_alias(parameter)
            if plain is not None and plain.layout is torch.strided and plain.is_floating_point():
                # In half precision what is less than a rounding of the type changes nothing.
                own = torch.finfo(plain.dtype).eps
                most = amount * own / _SINGLE if own < _SINGLE else max(amount, own)
                drawn = torch.empty(plain.shape, dtype=plain.dtype).uniform_(-most, most, generator=_generator)
                plain.addcmul_(plain, drawn)
