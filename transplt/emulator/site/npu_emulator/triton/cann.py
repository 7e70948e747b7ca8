"""`triton.language.extra.cann`: what triton-ascend adds to the language, for the interpreter.

Hints do nothing (`compile_hint`, `multibuffer`, `parallel`), and neither does what lets the cores of one program wait
for each other: here a program is one core, with one vector core. Older releases have the functions in `tl` and the
library as `triton.language.extra.ascend`.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import triton.language as tl
import triton.runtime.interpreter as interpreter

from . import limits
from .blocks import number_of
from .libdevice import library

_PACKAGE = "triton.language.extra"
#: Functions that move data in ways that have no emulation yet.
_NOT_EMULATED = (
    "index_put gather_out_to_ub scatter_ub_to_out index_select_simd copy_from_ub_to_l1 copy fixpipe custom "
    "custom_semantic register_custom_op"
).split()


def _part(offsets: Any, sizes: Any, strides: Any) -> tuple[slice, ...]:
    numbers = [(number_of(o), number_of(n), number_of(s)) for o, n, s in zip(offsets, sizes, strides, strict=True)]
    return tuple(slice(start, start + (count - 1) * step + 1, step or 1) for start, count, step in numbers)


def _tensor(data: Any, dtype: Any) -> Any:
    handle = interpreter.TensorHandle(np.ascontiguousarray(data), dtype.scalar)
    return tl.tensor(handle, tl.block_type(dtype.scalar, list(data.shape)) if data.ndim else dtype.scalar)


def extract_slice(ful: Any, offsets: Any, sizes: Any, strides: Any, **rest: Any) -> Any:
    """The part of a tile at `offsets`, of `sizes`, every `strides`-th element."""
    return _tensor(ful.handle.data[_part(offsets, sizes, strides)], ful.dtype)


def insert_slice(ful: Any, sub: Any, offsets: Any, sizes: Any, strides: Any, **rest: Any) -> Any:
    """A tile with a part replaced."""
    data = ful.handle.data.copy()
    data[_part(offsets, sizes, strides)] = sub.handle.data
    return _tensor(data, ful.dtype)


def get_element(src: Any, indice: Any, **rest: Any) -> Any:
    """One element of a tile, a scalar."""
    value = src.handle.data[tuple(number_of(each) for each in indice)]
    return tl.tensor(interpreter.TensorHandle(np.array([value]), src.dtype.scalar), src.dtype.scalar)


def sort(ptr: Any, dim: Any = -1, descending: Any = False, **rest: Any) -> Any:
    """The tile sorted along an axis."""
    limits.check_type("sort", ptr.dtype)
    data = np.sort(ptr.handle.data, axis=number_of(dim))
    return _tensor(np.flip(data, number_of(dim)) if getattr(descending, "value", descending) else data, ptr.dtype)


def flip(ptr: Any, dim: Any = -1, **rest: Any) -> Any:
    """The tile turned round along an axis."""
    limits.check_type("flip", ptr.dtype)
    return _tensor(np.flip(ptr.handle.data, number_of(dim)), ptr.dtype)


def cast(input: Any, dtype: Any, *args: Any, overflow_mode: Any = None, **rest: Any) -> Any:
    """tl.cast; `saturate` keeps whole numbers at the ends of their type."""
    if getattr(overflow_mode, "value", overflow_mode) == "saturate" and dtype.is_int():
        ends = np.iinfo(interpreter._get_np_dtype(dtype))
        return _tensor(np.clip(input.handle.data, ends.min, ends.max).astype(ends.dtype), dtype)
    return input.to(dtype)


def parallel(arg1: Any, arg2: Any = None, step: Any = None, **hints: Any) -> range:
    """A range whose steps may be shared by the vector cores."""
    start, end = (0, arg1) if arg2 is None else (arg1, arg2)
    return range(number_of(start), number_of(end), 1 if step is None else number_of(step))


def sub_vec_id(**rest: Any) -> Any:
    """The number of the vector core: a program has one here."""
    return tl.tensor(interpreter.TensorHandle(np.zeros(1, np.int32), tl.int32), tl.int32)


def sub_vec_num(**rest: Any) -> Any:
    """How many vector cores share a program."""
    return tl.tensor(interpreter.TensorHandle(np.ones(1, np.int32), tl.int32), tl.int32)


def multibuffer(src: Any, size: Any, **rest: Any) -> None:
    """A hint: this tile is to have so many buffers."""
    if number_of(size) != 2:
        raise AssertionError("only support bufferize equals 2")


def _hint(*args: Any, **kwargs: Any) -> None:
    """Nothing to do where one program runs after another."""


@contextlib.contextmanager
def scope(*args: Any, **kwargs: Any) -> Iterator[None]:
    """Names the kind of core for what is inside."""
    yield


def _not_emulated(name: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{name} of triton.language.extra.cann.extension is not emulated")

    return call


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "extract_slice": extract_slice, "insert_slice": insert_slice, "get_element": get_element, "sort": sort,
    "flip": flip, "cast": cast, "parallel": parallel, "sub_vec_id": sub_vec_id, "sub_vec_num": sub_vec_num,
    "multibuffer": multibuffer, "compile_hint": _hint, "sync_block_all": _hint, "sync_block_set": _hint,
    "sync_block_wait": _hint, "debug_barrier": _hint, "scope": scope,
}  # fmt: skip
#: Those that older releases have in `tl`.
_IN_LANGUAGE = (
    "extract_slice insert_slice get_element parallel multibuffer compile_hint sync_block_all sync_block_set "
    "sync_block_wait"
).split()


def extension(name: str, functions: ModuleType) -> ModuleType:
    """The module `extension`; `functions` is the library of mathematics, some of which it has too."""
    module = ModuleType(name, "What triton-ascend adds to Triton's language, emulated.")
    for each, value in _FUNCTIONS.items():
        setattr(module, each, value)
    for each in ("atan2", "isfinited", "finitef"):
        setattr(module, each, getattr(functions, each))
    for each in _NOT_EMULATED:
        setattr(module, each, _not_emulated(each))
    module.int64 = int  # type: ignore[attr-defined]
    return module


def install() -> None:
    """Put the package where triton-ascend has it; not on the stand-in for CUDA."""
    if not limits.ENFORCED:
        return
    outer = sys.modules[_PACKAGE]
    for short in ("cann", "ascend"):
        name = f"{_PACKAGE}.{short}"
        package = ModuleType(name, "Emulated package of triton-ascend.")
        package.__path__ = []
        functions = library(f"{name}.libdevice")
        functions.flip = flip  # type: ignore[attr-defined]
        for part, module in (("libdevice", functions), ("extension", extension(f"{name}.extension", functions))):
            setattr(package, part, module)
            sys.modules[f"{name}.{part}"] = module
        sys.modules[name] = package
        setattr(outer, short, package)
    for each in _IN_LANGUAGE:
        if not hasattr(tl, each):
            setattr(tl, each, _FUNCTIONS[each])
