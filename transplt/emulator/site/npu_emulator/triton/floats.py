"""bfloat16 in the interpreter, which keeps it as bits and computes with those: here float32 computes, rounded after it.

On an NPU sums of float16 are float32 inside (triton-ascend#1346); the interpreter adds up in float16.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
import triton.runtime.interpreter as interpreter

from .limits import ENFORCED

_Handle = interpreter.TensorHandle
#: Operations of the builder that compute with numbers; those that move them need nothing.
_COMPUTE = (
    "fadd fmul fdiv frem fsub fneg precise_divf approx_divf minimumf minnumf maximumf maxnumf fma clampf cos exp exp2 "
    "floor ceil log log2 precise_sqrt sqrt sin erf rsqrt dot fcmpOLT fcmpOGT fcmpOLE fcmpOGE fcmpOEQ fcmpONE fcmpULT "
    "fcmpUGT fcmpULE fcmpUGE fcmpUEQ fcmpUNE"
).split()
_CASTS = "si_to_fp ui_to_fp fp_to_si fp_to_ui fp_ext fp_trunc fp_to_fp".split()


def decode(bits: Any) -> Any:
    """float32 of the bits of bfloat16 (uint16)."""
    return (np.asarray(bits).astype(np.uint32) << np.uint32(16)).view(np.float32)


def encode(values: Any) -> Any:
    """The bits of bfloat16 (uint16) that are nearest to float32, ties to even."""
    values = np.ascontiguousarray(values, dtype=np.float32)
    bits = values.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded.astype(np.uint16))


def _is_brain(handle: Any) -> bool:
    return isinstance(handle, _Handle) and handle.dtype == tl.bfloat16


def wide(handle: Any) -> Any:
    """A handle of bfloat16 as one of float32; others as they are."""
    return _Handle(decode(handle.data), tl.float32) if _is_brain(handle) else handle


def narrow(handle: Any) -> Any:
    """A handle of float32 as one of bfloat16; others as they are."""
    floating = isinstance(handle, _Handle) and handle.data.dtype == np.float32
    return _Handle(encode(handle.data), tl.bfloat16) if floating else handle


def _computing(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def compute(self: Any, *args: Any) -> Any:
        if not any(_is_brain(arg) for arg in args):
            return method(self, *args)
        result = method(self, *[wide(arg) for arg in args])
        # Products of matrices have the type of what they are added to.
        return result if len(args) > 2 and isinstance(args[2], _Handle) and not _is_brain(args[2]) else narrow(result)

    return compute


def _casting(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def cast(self: Any, source: Any, target: Any, *how: Any) -> Any:
        if target.scalar == tl.bfloat16 and not _is_brain(source) and not source.dtype.is_fp8():
            return _Handle(encode(source.data.astype(np.float32)), tl.bfloat16)
        if _is_brain(source) and not target.scalar.is_fp8() and target.scalar != tl.bfloat16:
            kind = interpreter._get_np_dtype(target.scalar)
            return _Handle(decode(source.data).astype(kind), target.scalar)
        return method(self, source, target, *how)

    return cast


def _wide_tensor(tensor: Any) -> Any:
    handle = wide(tensor.handle)
    kind = tensor.type.with_element_ty(tl.float32) if tensor.type.is_block() else tl.float32
    return tl.core.tensor(handle, kind)


def _narrow_tensor(tensor: Any) -> Any:
    if tensor.dtype != tl.float32:
        return tensor
    kind = tensor.type.with_element_ty(tl.bfloat16) if tensor.type.is_block() else tl.bfloat16
    return tl.core.tensor(narrow(tensor.handle), kind)


def _reducing(apply: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(apply)
    def reduce(self: Any, given: Any) -> Any:
        brains = [tensor.dtype == tl.bfloat16 for tensor in given]
        if not any(brains):
            return apply(self, given)
        wider = [_wide_tensor(each) if brain else each for each, brain in zip(given, brains, strict=True)]
        result = apply(self, tuple(wider))
        if isinstance(result, (list, tuple)):
            return tuple(_narrow_tensor(each) if brain else each for each, brain in zip(result, brains, strict=False))
        return _narrow_tensor(result)

    return reduce


def _sum(self: Any, given: Any) -> Any:
    data, kind = given.handle.data, np.float32 if given.dtype == tl.float16 else None
    return self.to_tensor(np.sum(data, axis=self.axis, keepdims=self.keep_dims, dtype=kind), given.dtype)


def install() -> None:
    """Let the interpreter compute bfloat16, and on an NPU add up float16 in float32."""
    builder = interpreter.InterpreterBuilder
    builder.get_bf16 = lambda self, value: _Handle(encode(np.array([value])), tl.bfloat16)  # older versions have none
    for names, around in ((_COMPUTE, _computing), (_CASTS, _casting)):
        for name in names:
            method = getattr(builder, f"create_{name}", None)
            if method is not None:
                setattr(builder, f"create_{name}", around(method))
    for kind in (interpreter.ReduceOps, interpreter.ScanOps):
        kind.apply_impl = _reducing(kind.apply_impl)
    if ENFORCED:
        interpreter.ReduceOps.sum = _sum
