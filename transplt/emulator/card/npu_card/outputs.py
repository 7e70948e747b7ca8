"""Where the results of an operator go: memory that torch_npu has made for them."""

from __future__ import annotations

import struct
from typing import Any

from .records import DTYPES, MEMORY, TENSOR, tensor_at, unpack


def put(target: Any, value: Any) -> None:
    """Write a result into an output of the same number of elements; a list into a list. None is no result."""
    if target is None or value is None:
        return
    if isinstance(target, list):
        for each, part in zip(target, value, strict=True):
            put(each, part)
    elif target.shape == value.shape:
        target.copy_(value)
    elif target.numel() == value.numel():
        target.copy_(value.reshape(target.shape))
    else:
        raise AssertionError(f"a result of shape {tuple(value.shape)} for an output of {tuple(target.shape)}")


def resize(handle: int, value: Any) -> None:
    """Write `value` into the output at `handle`, whose size only the operator knows, and its size into the record,
    where torch_npu asks for it (aclGetViewShape). None is no result."""
    if not handle or value is None:
        return
    _, _, dtype, _, _, address, offset = unpack("q4iQq", MEMORY, handle)
    value = value.contiguous()
    if value.numel():
        kind = DTYPES[dtype]
        tensor_at(address + offset * kind.itemsize, kind, (value.numel(),), (1,)).copy_(value.reshape(-1))
    struct.pack_into("q4i", MEMORY, handle, 0, TENSOR, dtype, 2, value.dim())
    struct.pack_into(f"{value.dim()}q", MEMORY, handle + 40, *value.shape)
