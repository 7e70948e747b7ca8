"""Triton's language as kernels write it, in the interpreter: patched once, and with what triton-ascend takes besides.

The interpreter patches `triton.language` for each launch and leaves names that a kernel imported alone as they were
(`from triton.language import load`); here that is done once, right after the import of Triton. Block pointers, which
newer versions of Triton no longer have, are made again: kernels for NPUs use them.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import triton.language as tl
import triton.runtime.interpreter as interpreter
from triton.language import core, math

from . import blocks, limits, place, semantic
from .blocks import BlockPointer

_OWNERS = (tl, core)


class _Scope:
    """What the interpreter restores after a launch: nothing."""

    def restore(self) -> None:
        """The language stays as it is."""

    def set_attr(self, owner: object, name: str, value: object) -> None:
        """As the interpreter's; nothing is kept."""
        setattr(owner, name, value)


def with_semantic(module: ModuleType) -> None:
    """Let the builtins of a module be called without `_semantic`, as the interpreter does for the language."""
    for name, member in inspect.getmembers(module):
        if core.is_builtin(member):
            setattr(module, name, builtin(member))


def builtin(member: Callable[..., Any]) -> Callable[..., Any]:
    """A builtin of Triton as a kernel calls it."""

    @functools.wraps(member)
    def call(*args: Any, **kwargs: Any) -> Any:
        kwargs["_semantic"] = interpreter.interpreter_semantic
        return member(*args, **kwargs)

    del call.__dict__[core.TRITON_BUILTIN]  # it is none to those who look for builtins
    return call


def _put(name: str, value: Any) -> None:
    for owner in _OWNERS:
        setattr(owner, name, value)


def _load(plain: Callable[..., Any]) -> Callable[..., Any]:
    def load(
        pointer: Any, mask: Any = None, other: Any = None, boundary_check: Any = (), padding_option: Any = "",
        cache_modifier: Any = "", eviction_policy: Any = "", volatile: Any = False, care_padding: Any = True,
        _semantic: Any = None,
    ) -> Any:  # fmt: skip
        """tl.load, with `boundary_check` and `padding_option` of block pointers and triton-ascend's `care_padding`."""
        if isinstance(pointer, BlockPointer):
            pointer, mask, other = blocks.to_load(pointer, boundary_check, padding_option)
        return plain(pointer, mask, other)

    return load


def _store(plain: Callable[..., Any]) -> Callable[..., Any]:
    def store(
        pointer: Any, value: Any, mask: Any = None, boundary_check: Any = (), cache_modifier: Any = "",
        eviction_policy: Any = "", _semantic: Any = None,
    ) -> Any:  # fmt: skip
        """tl.store, with `boundary_check` of block pointers."""
        if isinstance(pointer, BlockPointer):
            pointer, mask, _ = blocks.to_load(pointer, boundary_check, "")
        return plain(pointer, value, mask)

    return store


def _dot(plain: Callable[..., Any]) -> Callable[..., Any]:
    def dot(
        input: Any, other: Any, acc: Any = None, input_precision: Any = None, allow_tf32: Any = None,
        max_num_imprecise_acc: Any = None, out_dtype: Any = tl.float32, _semantic: Any = None,
    ) -> Any:  # fmt: skip
        """tl.dot; a card has no tf32, and computes in float32 (`ieee`) or hf32."""
        values = {"input_precision": input_precision, "allow_tf32": allow_tf32, "out_dtype": out_dtype}
        semantic.check_dot(input, other, acc, **values)
        if getattr(input_precision, "value", input_precision) == "hf32":
            input_precision = "ieee"
        return plain(input, other, acc, input_precision, allow_tf32, None, out_dtype)

    return dot


def _cast(plain: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(plain)
    def cast(input: Any, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        kwargs.pop("overflow_mode", None)  # of triton-ascend: what integers become that do not fit
        limits.check_type("cast", dtype)
        return plain(input, dtype, *args, **kwargs)

    return cast


def _assembly(*args: Any, **kwargs: Any) -> Any:
    """tl.inline_asm_elementwise: no interpreter runs PTX, and no card."""
    if limits.ENFORCED:
        limits.refuse("triton assembly", place.line(), limits.DoesNotFit)
    raise NotImplementedError("inline assembly is not run by Triton's interpreter: compute it by functions of tl")


def _where(plain: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(plain)
    def where(condition: Any, x: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
        for value in (x, y):
            if isinstance(value, tl.tensor) and not isinstance(value.dtype.scalar, tl.pointer_type):
                limits.check_type("where", value.dtype)
        return plain(condition, x, y, *args, **kwargs)

    return where


def device_range(first: Any, last: Any = None, step: Any = None, **hints: Any) -> Iterator[Any]:
    """`range` and tl.range of a kernel: a device counts in a scalar of its own, which has a type and methods."""
    given = (0, first, 1) if last is None else (first, last, 1 if step is None else step)
    ends = [getattr(value, "value", value) for value in given]
    long = any(isinstance(value, tl.tensor) and value.dtype.primitive_bitwidth > 32 for value in ends)
    kind, numbers = (tl.int64, np.int64) if long else (tl.int32, np.int32)
    for number in range(*[int(value.__index__()) for value in ends]):
        yield tl.tensor(interpreter.TensorHandle(np.array([number]).astype(numbers), kind), kind)


def _for(self: Any, node: ast.For) -> ast.For:
    """ASTTransformer.visit_For: `range` of a kernel is the device's; its module goes on with Python's."""
    self.generic_visit(node)
    called = node.iter
    if isinstance(called, ast.Call) and isinstance(called.func, ast.Name) and called.func.id == "range":
        called.func.id = "device_range"
    return node


def _function(plain: Callable[..., Any]) -> Callable[..., Any]:
    """A function that Triton writes in its own language (tl.sort, tl.sum): its type is that of its first tensor."""

    @functools.wraps(plain)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.fn.__module__ == "triton.language.standard" and args:
            typed = args[1] if self.fn.__name__ == "zeros" and len(args) > 1 else args[0]
            limits.check_type(self.fn.__name__, getattr(typed, "dtype", typed))
        return self.rewrite()(*args, **kwargs)

    return call


def install() -> None:
    """Patch the language for good."""
    interpreter._patch_lang(SimpleNamespace(__globals__={"tl": tl, "core": core}))
    interpreter._patch_lang = lambda function: _Scope()
    with_semantic(math)  # where the interpreter left some
    _put("load", _load(tl.load))
    _put("store", _store(tl.store))
    _put("dot", _dot(tl.dot))
    _put("where", _where(tl.where))
    _put("cast", _cast(tl.cast))
    _put("make_block_ptr", blocks.make_block_ptr)
    _put("advance", blocks.advance)
    _put("inline_asm_elementwise", _assembly)
    _put("range", device_range)
    interpreter.device_range = device_range  # where rewritten kernels look for it
    interpreter.ASTTransformer.visit_For = _for
    core.tensor.__index__ = lambda self: int(self.handle.data.item())
    core.tensor.to = _cast(core.tensor.to)
    core.tensor.advance = blocks.advance
    kind = interpreter.InterpretedFunction
    kind.__call__ = _function(kind.__call__)
