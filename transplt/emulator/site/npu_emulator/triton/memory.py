"""Which tensor a pointer of a kernel points into, and what it reads or writes beside it.

A pointer keeps the argument that it was made of (`base` of a handle). One that was made of a number has none, and is
not looked at.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import triton.runtime.interpreter as interpreter

from . import limits, place

_Handle = interpreter.TensorHandle


class Base(NamedTuple):
    """The memory of an argument: addresses from `start` up to `end`."""

    start: int
    end: int
    name: str


def base_of(tensor: Any, name: str) -> Base:
    """The memory that a tensor is a view of."""
    storage = tensor.untyped_storage()
    start = storage.data_ptr()
    return Base(start, start + storage.nbytes(), name)


def inherit(result: Any, args: tuple[Any, ...]) -> None:
    """Let a pointer know the argument that the pointers it was made of point into."""
    found = {arg.base for arg in args if isinstance(arg, _Handle) and getattr(arg, "base", None) is not None}
    if len(found) == 1:
        result.base = found.pop()


def inside(pointers: Any, mask: Any, what: str) -> Any:
    """The mask (an array) of the elements that lie in the argument's memory: those of `mask` where all do.

    A card's program stops at others; on the stand-in for CUDA they are left out, with a remark.
    """
    base = getattr(pointers, "base", None)
    data = pointers.data
    if base is None or not data.size:
        return mask
    size = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
    last = max(base.end - size, 0)
    if base.start <= int(data.min()) and int(data.max()) <= last:
        return mask
    good = (data >= np.uint64(base.start)) & (data <= np.uint64(last))
    if base.end - base.start < size:
        good[...] = False
    wrong = mask & ~good
    if not wrong.any():
        return mask
    bad = data[wrong]
    elements = (bad.astype(np.int64) - base.start) // size
    values = {
        "what": what, "argument": base.name, "count": int(wrong.sum()), "size": (base.end - base.start) // size,
        "first": int(elements.min()), "last": int(elements.max()),
    }  # fmt: skip
    if limits.ENFORCED:
        limits.refuse("triton outside", place.line(), **values)
    limits.tell("triton outside", place.line(), **values)
    return mask & good
