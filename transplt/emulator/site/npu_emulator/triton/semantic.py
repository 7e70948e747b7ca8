"""Around the meaning of Triton's language: types and values of what a kernel writes, held against the card's."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import triton.language as tl
from triton.language.semantic import TritonSemantic

from . import limits, place, tiles

#: Methods of the semantic -> the operation of the table.
_OPERATIONS = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floordiv", "mod": "mod",
    "minimum": "minimum", "maximum": "maximum", "clamp": "clamp", "and_": "and", "or_": "or", "xor_": "xor",
    "logical_and": "logical_and", "logical_or": "logical_or", "shl": "lshift", "ashr": "rshift", "lshr": "rshift",
    "minus": "neg", "invert": "invert", "greater_than": "gt", "greater_equal": "ge", "less_than": "lt",
    "less_equal": "le", "equal": "eq", "not_equal": "ne", "load": "load", "expand_dims": "expand_dims", "cat": "cat",
    "join": "join", "split": "split", "permute": "permute", "reshape": "reshape", "gather": "gather",
    "atomic_add": "atomic_add", "atomic_and": "atomic_and", "atomic_cas": "atomic_cas", "atomic_max": "atomic_max",
    "atomic_min": "atomic_min", "atomic_or": "atomic_or", "atomic_xchg": "atomic_xchg", "atomic_xor": "atomic_xor",
    "store": "store", "fdiv": "fdiv", "umulhi": "umulhi",
}  # fmt: skip
_SHIFTS = ("shl", "ashr", "lshr")
#: Bytes that the last axis of a tile should be a multiple of (triton-ascend, migrate_from_gpu.md).
_VECTOR_BYTES, _CUBE_BYTES = 32, 512


def _shift(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """A tile shifted by a tile is a loop over its elements (triton-ascend: docs/zh/triton_api, lshift and rshift)."""
    typed = _typed(name, method)

    @functools.wraps(method)
    def call(self: Any, first: Any, second: Any, *rest: Any) -> Any:
        if limits.documented() and isinstance(second, tl.tensor) and second.type.is_block():
            frame = place.written_line()
            if frame is not None:
                limits.tell("triton shift", frame, name=_OPERATIONS[name])
        return typed(self, first, second, *rest)

    return call


def _quotient(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """`//` of tiles that were read goes through float32; of positions alone it is exact."""
    typed = _typed(name, method)

    @functools.wraps(method)
    def call(self: Any, first: Any, *rest: Any) -> Any:
        tile = isinstance(first, tl.tensor) and first.type.is_block() and limits.type_name(first.dtype) == "int32"
        if tile and getattr(first.handle, "tile", None) is not None:
            limits.check_division(first, "`//`")
        return typed(self, first, *rest)

    return call


def _typed(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    operation = _OPERATIONS[name]
    refused = limits.refused_types(operation)

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if refused:
            for arg in args[:2]:
                if isinstance(arg, tl.tensor) and limits.type_name(arg.dtype) in refused and _counts(operation, arg):
                    limits.check_type(operation, arg.dtype)
        return method(self, *args, **kwargs)

    return call


def _counts(operation: str, tensor: Any) -> bool:
    """Pointers are operands only of what goes to memory."""
    memory = operation in ("load", "store") or operation.startswith("atomic")
    return memory or not isinstance(tensor.dtype.scalar, tl.pointer_type)


def _atomic(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """The last two arguments of an atomic are its order and its scope."""
    typed = _typed(name, method)
    behind = 3  # (pointer, value, mask) and (pointer, compared, value)

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        for at, argument in enumerate(("sem", "scope")):
            given = args[behind + at] if len(args) > behind + at else None
            limits.check_value(name, argument, kwargs.get(argument, given))
        return typed(self, *args, **kwargs)

    return call


def _full(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def full(self: Any, shape: Any, value: Any, dtype: Any, *rest: Any) -> Any:
        limits.check_type("full", dtype)
        result = method(self, shape, value, dtype, *rest)
        measured = tiles.measured
        if measured is not None and not measured.depth and place.written_line() is not None:
            measured.operation("full", (), result.handle)
        return result

    return full


def _arange(method: Callable[..., Any]) -> Callable[..., Any]:
    """tl.arange, of any length: an NPU needs no power of two (triton-ascend: docs/zh/triton_api, arange)."""

    @functools.wraps(method)
    def arange(self: Any, start: int, end: int, **rest: Any) -> Any:
        if not isinstance(start, int) or not isinstance(end, int) or end <= start:
            return method(self, start, end, **rest)
        kind = tl.block_type(tl.int32, [end - start])
        return tl.tensor(self.builder.create_make_range(kind, start, end), kind)

    return arange


def _numel(shape: Any) -> int:
    """The elements of a tile of that shape, whose sizes are any numbers."""
    if not all(isinstance(size, int) for size in shape):
        raise TypeError(f"the sizes of a tile are constants, and these are not: {shape}")
    return math.prod(shape)


def _axis(tensor: Any, whole: int) -> None:
    """Remark on a tile of two dimensions and more whose rows are no multiple of `whole` bytes."""
    shape = [int(getattr(size, "value", size)) for size in tensor.shape]
    if not limits.ENFORCED or len(shape) < 2 or shape[-1] == 1:
        return
    size = shape[-1] * max(1, tensor.dtype.primitive_bitwidth // 8)
    if size % whole:
        frame = place.written_line()
        if frame is not None:
            limits.tell("triton axis", frame, shape="x".join(map(str, shape)), size=size, whole=whole)


def _load(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def load(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = method(self, *args, **kwargs)
        _axis(result, _VECTOR_BYTES)
        return result

    return load


def check_dot(first: Any, second: Any, acc: Any, **values: Any) -> None:
    """Refuse a matrix product of types, or with arguments, that a card does not take; `values` by their names."""
    for operand in (first, second):
        limits.check_type("dot", operand.dtype)
    if acc is not None:
        limits.check_value("dot", "acc", acc.dtype)
    for name, value in values.items():
        limits.check_value("dot", name, value)


def install() -> None:
    """Wrap the methods of the semantic that operators and functions of the language call."""
    for name in _OPERATIONS:
        method = getattr(TritonSemantic, name, None)
        if method is not None:
            special = {"floordiv": _quotient, **dict.fromkeys(_SHIFTS, _shift)}
            around = _atomic if name.startswith("atomic") else special.get(name, _typed)
            setattr(TritonSemantic, name, around(name, method))
    TritonSemantic.full = _full(TritonSemantic.full)
    TritonSemantic.load = _load(TritonSemantic.load)
    if limits.ENFORCED:
        TritonSemantic.arange = _arange(TritonSemantic.arange)
        tl.core.validate_block_shape = _numel
