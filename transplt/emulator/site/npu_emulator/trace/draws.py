"""Random numbers that are drawn once training has begun, by torch, numpy's global generator or `random`."""

from __future__ import annotations

import functools
import random
import sys
from types import ModuleType
from typing import Any

import torch

from ..start import when_imported
from ..user_code import nearest
from . import loaders, steps
from .log import emit, is_quiet

_DRAWS = "rand randn randint randperm rand_like randn_like randint_like normal bernoulli multinomial poisson".split()
_DRAWS_INTO = "normal_ uniform_ random_ bernoulli_ exponential_ geometric_ cauchy_ log_normal_".split()
#: Functions of the global generators that draw nothing.
_STATE = ("seed", "getstate", "setstate", "get_state", "set_state")
#: Lines that were recorded.
_seen: set[tuple[str, int]] = set()


def install() -> None:
    """Record each line that draws, once."""
    for name in _DRAWS:
        setattr(torch, name, _drawing(getattr(torch, name)))
    tensor: Any = torch.Tensor
    for name in _DRAWS_INTO:
        setattr(tensor, name, _drawing(getattr(tensor, name)))
    _watch(random, random.__dict__["_inst"])
    when_imported("numpy", lambda numpy: _watch(numpy.random, numpy.random.mtrand._rand))


def _watch(module: ModuleType, generator: object) -> None:
    """The functions of a module that are methods of its one generator."""
    for name, value in [*vars(module).items()]:
        if getattr(value, "__self__", None) is generator and name not in _STATE:
            setattr(module, name, _drawing(value))


def _drawing(original: Any) -> Any:
    @functools.wraps(original)
    def drawn(*args: Any, **kwargs: Any) -> Any:
        if (loaders.begun() or steps.attempts()) and not is_quiet():
            frame = nearest(1)
            place = (frame.f_code.co_filename, frame.f_lineno) if frame is not None else ("", 0)
            if place not in _seen and not _of_the_loader():
                _seen.add(place)
                emit("draw", frame)
        return original(*args, **kwargs)

    return drawn


def _of_the_loader() -> bool:
    """Whether torch.utils.data draws: an order, or a seed for its workers."""
    frame = sys._getframe(2)
    return frame.f_globals.get("__name__", "").startswith("torch.utils.data")
