"""Block pointers (tl.make_block_ptr, tl.advance): triton-ascend has them, Triton from 3.9 on does not.

After Triton 3.4: a block of `block_shape` at `offsets` of a tensor with `shape` and `strides`; `boundary_check` names
the dimensions in which what lies outside is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import triton.language as tl
import triton.runtime.interpreter as interpreter

from . import limits


@dataclass(frozen=True)
class BlockPointer:
    """A place in a tensor; `base` is the tensor's pointer, the rest are numbers by dimension."""

    base: Any
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offsets: tuple[int, ...]
    block_shape: tuple[int, ...]
    order: tuple[int, ...]

    @property
    def dtype(self) -> Any:
        """The type of a pointer to its elements."""
        return self.base.dtype

    @property
    def type(self) -> Any:
        return self.base.dtype

    def advance(self, offsets: Any) -> BlockPointer:
        """The block so many elements further on."""
        return replace(self, offsets=tuple(a + b for a, b in zip(self.offsets, _numbers(offsets), strict=True)))


def number_of(value: Any) -> int:
    if isinstance(value, tl.tensor):
        return int(value.handle.data.item())
    return int(getattr(value, "value", value))


def _numbers(values: Any) -> tuple[int, ...]:
    return tuple(number_of(value) for value in values)


def make_block_ptr(
    base: Any, shape: Any, strides: Any, offsets: Any, block_shape: Any, order: Any, _semantic: Any = None
) -> BlockPointer:
    """tl.make_block_ptr."""
    limits.check_type("make_block_ptr", base.dtype)
    parts = [_numbers(values) for values in (shape, strides, offsets, block_shape, order)]
    if len({len(part) for part in parts}) != 1:
        raise ValueError("Expected shape, strides, offsets, block_shape and order to have the same length")
    return BlockPointer(base, *parts)


def advance(base: BlockPointer, offsets: Any, _semantic: Any = None) -> BlockPointer:
    """tl.advance."""
    return base.advance(offsets)


def to_load(block: BlockPointer, boundary_check: Any, padding: Any) -> tuple[Any, Any, Any]:
    """(pointers, mask, other) of a block, as tl.load takes them; no mask where nothing is checked."""
    handle = block.base.handle
    element = block.base.dtype.element_ty
    size = max(1, element.primitive_bitwidth // 8)
    checked = {number_of(axis) % len(block.shape) for axis in (boundary_check or ())}
    at = np.full(block.block_shape, int(handle.data.item()), np.int64)
    mask = np.ones(block.block_shape, dtype=bool)
    for axis, count in enumerate(block.block_shape):
        place = [1] * len(block.block_shape)
        place[axis] = count
        offsets = (block.offsets[axis] + np.arange(count, dtype=np.int64)).reshape(place)
        at = at + size * offsets * block.strides[axis]
        if axis in checked:
            mask = mask & (offsets >= 0) & (offsets < block.shape[axis])
    shape = list(block.block_shape)
    pointers = interpreter.TensorHandle(at.view(np.uint64), handle.dtype)
    pointers.base = getattr(handle, "base", None)
    tensor = tl.tensor(pointers, tl.block_type(block.base.dtype, shape))
    if not checked:
        return tensor, None, None
    kept = tl.tensor(interpreter.TensorHandle(mask, tl.int1), tl.block_type(tl.int1, shape))
    return tensor, kept, float("nan") if padding == "nan" else None
