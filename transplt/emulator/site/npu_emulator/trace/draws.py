"""Random numbers that are drawn once training has begun, by torch, numpy's global generator or `random`.

`draw` is the first of a line; `noise` has a checksum of what a line drew, for the first draws of each step: numbers, a
`few` of which may come again by chance, or the state of the generator that a dropout would have drawn from.
"""

from __future__ import annotations

import functools
import random
import sys
import zlib
from types import FrameType, ModuleType
from typing import Any

import torch

from ..start import when_imported
from ..user_code import nearest
from . import loaders, repeat, steps
from .figures import host_alias
from .log import emit, is_quiet, place_of, quiet

_DRAWS = "rand randn randint randperm rand_like randn_like randint_like normal bernoulli multinomial poisson".split()
_DRAWS_INTO = "normal_ uniform_ random_ bernoulli_ exponential_ geometric_ cauchy_ log_normal_".split()
_ORDERS = ("randperm", "shuffle", "permutation", "sample", "choice")
#: Functions of the global generators that draw nothing.
_STATE = ("seed", "getstate", "setstate", "get_state", "set_state")
#: So many draws of a line are recorded in one step and in all, and so many bytes of each are looked at.
_IN_A_STEP, _IN_ALL, _BYTES = 2, 50, 4096
#: What hardly ever comes twice by chance: that many bits.
_BITS = 40
_FLOAT_BITS = 24
#: Lines that were recorded: how often, and the step and number of the last draw there.
_seen: set[tuple[str, int]] = set()
_recorded: dict[tuple[str, int], int] = {}
_last: dict[tuple[str, int], tuple[int, int]] = {}


def install() -> None:
    """Record each line that draws."""
    repeat.when_dropped(_dropped)
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
        if original.__name__ in _ORDERS and not is_quiet():
            drawer = nearest(1)
            loaders.ordered[:] = [place_of(drawer)] if drawer is not None else []
        if not _training() or _of_the_loader():
            return original(*args, **kwargs)
        frame = nearest(1)
        place = _place(frame)
        if place not in _seen:
            _seen.add(place)
            emit("draw", frame)
        result = original(*args, **kwargs)
        number = _next(place)
        if number is not None and (found := _checksum(result)) is not None:
            _record(frame, place, number, rows=len(result) if getattr(result, "shape", ()) else 0, **found)
        return result

    return drawn


def _training() -> bool:
    return bool(loaders.begun() or steps.attempts()) and not is_quiet()


def _place(frame: FrameType | None) -> tuple[str, int]:
    return (frame.f_code.co_filename, frame.f_lineno) if frame is not None else ("", 0)


def _dropped() -> None:
    """A dropout keeps everything: what it would have drawn from stands for what it would have drawn."""
    turn = repeat.turn("dropout")
    if _training():
        frame = nearest(1)
        place = _place(frame)
        number = _next(place)
        if number is not None:
            _record(frame, place, number, sum=zlib.crc32(repr(turn).encode()))


def _next(place: tuple[str, int]) -> int | None:
    """The number of this draw among those of its line in this step, from 0; None for one that is not recorded."""
    step = sum(steps.attempts().values())
    before, number = _last.get(place, (-1, 0))
    number = number + 1 if before == step else 0
    _last[place] = (step, number)
    return number if number < _IN_A_STEP and _recorded.get(place, 0) < _IN_ALL else None


def _record(frame: FrameType | None, place: tuple[str, int], number: int, **fields: Any) -> None:
    _recorded[place] = _recorded.get(place, 0) + 1
    emit("noise", frame, step=sum(steps.attempts().values()), number=number, **fields)


def _checksum(drawn: Any) -> dict[str, Any] | None:
    """That of the first numbers, and whether they are so `few` that they may come again by chance; None for objects."""
    if isinstance(drawn, (int, float, str)):
        return {"sum": zlib.crc32(repr(drawn).encode()), "few": True}
    with quiet(), torch.no_grad():
        try:
            tensor = host_alias(drawn) if isinstance(drawn, torch.Tensor) else torch.from_numpy(drawn)
            flat = tensor.reshape(-1)[: _BYTES // tensor.element_size()].contiguous()
            values, counts = torch.unique(flat, return_counts=True)
            if flat.is_floating_point() and bool((values != values.round()).any()):
                bits = _FLOAT_BITS * values.numel()
            else:
                shares = counts / max(flat.numel(), 1)
                bits = -float((shares * shares.log2()).sum()) * flat.numel()
            return {"sum": zlib.crc32(memoryview(flat.view(torch.uint8).numpy())), "few": bits < _BITS}
        except (RuntimeError, TypeError, ValueError, AttributeError, NotImplementedError):
            return None


def _of_the_loader() -> bool:
    """Whether torch.utils.data draws: an order, or a seed for its workers."""
    frame = sys._getframe(2)
    return frame.f_globals.get("__name__", "").startswith("torch.utils.data")
