"""Around each operation of the interpreter's builder: memory is looked at before, tiles and pointers after it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
import triton.runtime.interpreter as interpreter

from . import limits, memory, tiles

_Handle = interpreter.TensorHandle
#: Functions of mathematics, and the operation of the table that each is.
_MATHS = {
    "create_cos": "cos", "create_sin": "sin", "create_exp": "exp", "create_exp2": "exp2", "create_log": "log",
    "create_log2": "log2", "create_sqrt": "sqrt", "create_precise_sqrt": "sqrt_rn", "create_precise_divf": "div_rn",
    "create_rsqrt": "rsqrt", "create_erf": "erf", "create_floor": "floor", "create_ceil": "ceil", "create_fma": "fma",
    "create_umulhi": "umulhi", "create_fabs": "abs", "create_iabs": "abs",
}  # fmt: skip


def around(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """An operation of the builder that its pointers, its tiles and its type are looked at."""
    operation = _MATHS.get(name, "")

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if operation and isinstance(args[0], _Handle):
            limits.check_type(operation, args[0].dtype)
        measured = tiles.measured
        if measured is None:
            result = method(self, *args, **kwargs)
        else:
            with measured.step():
                result = method(self, *args, **kwargs)
        if isinstance(result, _Handle) and isinstance(result.dtype, tl.pointer_type):
            memory.inherit(result, args)
        if measured is not None and not measured.depth:
            measured.operation(name, args, result)
        return result

    return call


def _masked_load(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def load(self: Any, pointers: Any, mask: Any, *rest: Any, **kwargs: Any) -> Any:
        kept = memory.inside(pointers, mask.data, "reads")
        return method(self, pointers, mask if kept is mask.data else _Handle(kept, tl.int1), *rest, **kwargs)

    return load


def _masked_store(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def store(self: Any, pointers: Any, value: Any, mask: Any, *rest: Any, **kwargs: Any) -> Any:
        kept = memory.inside(pointers, mask.data, "writes")
        return method(self, pointers, value, mask if kept is mask.data else _Handle(kept, tl.int1), *rest, **kwargs)

    return store


def _atomic_rmw(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def update(self: Any, kind: Any, pointers: Any, value: Any, mask: Any, *rest: Any) -> Any:
        kept = memory.inside(pointers, mask.data, "writes")
        mask = mask if kept is mask.data else _Handle(kept, tl.int1)
        if value.dtype != tl.bfloat16 or "FADD" not in str(kind):
            return method(self, kind, pointers, value, mask, *rest)
        return _add_brains(pointers, value, mask)

    return update


def _add_brains(pointers: Any, value: Any, mask: Any) -> Any:
    """atomic_add of bfloat16, one element after another: the interpreter knows none."""
    from .floats import decode, encode

    old = np.zeros(pointers.data.shape, np.uint16)
    whole = np.ones(1, bool)
    for place in zip(*np.nonzero(mask.data), strict=True):
        address = np.array([pointers.data[place]], np.uint64)
        before = interpreter._interpreter.load(address, whole, np.zeros(1, np.uint16), np.dtype(np.uint16))
        old[place] = before[0]
        interpreter._interpreter.store(address, encode(decode(before) + decode(value.data[place])), whole)
    return _Handle(old, tl.bfloat16)


def _atomic_cas(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def swap(self: Any, pointers: Any, *rest: Any) -> Any:
        memory.inside(pointers, np.ones_like(pointers.data, dtype=bool), "writes")
        return method(self, pointers, *rest)

    return swap


def install() -> None:
    """Wrap the builder's methods; `floats` comes before."""
    kind = interpreter.InterpreterBuilder
    for name, checked in (
        ("create_masked_load", _masked_load), ("create_masked_store", _masked_store),
        ("create_atomic_rmw", _atomic_rmw), ("create_atomic_cas", _atomic_cas),
    ):  # fmt: skip
        setattr(kind, name, checked(getattr(kind, name)))
    for name in dir(kind):
        if name.startswith("create_"):
            setattr(kind, name, around(name, getattr(kind, name)))
