"""Libraries of mathematics for kernels: those of CUDA for an original, that of CANN for what was migrated.

Triton's interpreter runs none of them. triton-ascend has `triton.language.extra.cann.libdevice`, with the functions of
CANN below; the modules of CUDA and HIP are not there on a card, and `triton.language.extra.libdevice` holds names
without functions (its backend maps none).
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import triton.language as tl
import triton.runtime.interpreter as interpreter
from triton.language import extra as _extra
from triton.language import math

from . import floats, limits, numeric, place
from .language import with_semantic

#: Functions of triton-ascend's third_party/ascend/language/cann/libdevice.py and what its __init__ adds.
CANN = (
    "abs acos acosh asin asinh atan atan2 atanh ceil copysign cos cosh cyl_bessel_i0 div_rn div_rz erf erfinv exp exp2 "
    "expm1 fast_dividef fast_expf fdiv finitef float_as_int floor fma fmod gamma hypot ilogb isfinited isinf isnan "
    "ldexp lgamma log log10 log1p log2 nearbyint nextafter pow reciprocal relu rint round rsqrt signbit sin sinh sqrt "
    "sqrt_rn tan tanh trunc"
).split()
#: Those that give whether, and a number of int32.
_WHETHER, _WHOLE = frozenset(("isinf", "isnan", "finitef", "isfinited", "isfinite")), frozenset(
    ("ilogb", "signbit", "float_as_int")
)
_FOREIGN = ("triton.language.extra.cuda", "triton.language.extra.hip")
_PREFIXES = ("__nv_", "__hmf_", "__ocml_")


def _symbol_name(symbol: str) -> str:
    """`tanh` of `__nv_tanhf`, `__hmf_tanh_fp32`, `__ocml_tanh_f32`."""
    for prefix in _PREFIXES:
        symbol = symbol.removeprefix(prefix)
    for suffix in ("_fp32", "_fp16", "_f32", "_f64", "_f16", "Dh", "Db", "ff"):
        symbol = symbol.removesuffix(suffix)
    return {"isinff": "isinf", "isnand": "isnan", "isinfd": "isinf", "isnanf": "isnan"}.get(symbol, symbol)


def _compute(function: Callable[..., Any], handles: Sequence[Any], dtype: Any) -> Any:
    """The handle of type `dtype` of a function of numpy."""
    arrays = [floats.wide(handle).data for handle in handles]
    with np.errstate(all="ignore"):
        result = np.asarray(function(*arrays))
    if dtype == tl.bfloat16:
        return interpreter.TensorHandle(floats.encode(result.astype(np.float32)), dtype)
    return interpreter.TensorHandle(result.astype(interpreter._get_np_dtype(dtype)), dtype)


def _extern(self: Any, library: str, path: str, symbol: str, args: Sequence[Any], result: Any, pure: bool) -> Any:
    """create_extern_elementwise: a function of a library, known by the end of its symbol."""
    function = numeric.function(_symbol_name(symbol), len(args))
    if function is None:
        raise NotImplementedError(f"{symbol} of a library of the device is not known to the emulator")
    return _compute(function, args, result.scalar)


def _tensor_function(name: str) -> Callable[..., Any]:
    """A function of `triton.language.extra.cann.libdevice` as a kernel calls it."""

    def call(*args: Any, _semantic: Any = None) -> Any:
        tensors = [interpreter.interpreter_semantic.to_tensor(arg) for arg in args]
        function = numeric.function(name, len(tensors))
        if function is None:
            raise TypeError(f"{name} does not take {len(tensors)} arguments")
        limits.check_type(name, tensors[0].dtype)
        dtype = tl.int1 if name in _WHETHER else tl.int32 if name in _WHOLE else tensors[0].dtype
        handle = _compute(function, [tensor.handle for tensor in tensors], dtype.scalar)
        shape = list(handle.data.shape)
        blocked = any(tensor.type.is_block() for tensor in tensors)
        interpreter.interpreter_builder.create_libdevice(handle, *[tensor.handle for tensor in tensors])
        return tl.tensor(handle, tl.block_type(dtype.scalar, shape) if blocked else dtype.scalar)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"libdevice.{name}, by numpy."
    return call


def library(name: str) -> ModuleType:
    """A module `name` with the functions of CANN's library."""
    module = ModuleType(name, "CANN's functions of mathematics for kernels, emulated by numpy.")
    for each in CANN:
        setattr(module, each, _tensor_function(each))
    return module


def _forget_foreign() -> None:
    """Let the modules of CUDA and HIP be absent, as on a host with triton-ascend."""
    for name in [name for name in sys.modules if name.startswith(_FOREIGN)]:
        del sys.modules[name]
    for name in _FOREIGN:
        _extra.__dict__.pop(name.rpartition(".")[2], None)
    _extra.__path__ = []


def _refused(name: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        limits.refuse("triton libdevice", place.line(), limits.DoesNotFit, name=name)

    return call


def _names_without_functions() -> None:
    """`triton.language.extra.libdevice`: on a GPU its names are those of the device's library."""
    from triton.language.extra import libdevice

    for name, member in inspect.getmembers(libdevice, inspect.isfunction):
        if limits.ENFORCED:
            setattr(libdevice, name, _refused(name))
        elif numeric.UNARY.get(name) or numeric.BINARY.get(name) or numeric.TERNARY.get(name):
            setattr(libdevice, name, functools.wraps(member)(_tensor_function(name)))


def _note(self: Any, result: Any, *operands: Any) -> Any:
    """An operation of the builder that is known to who measures tiles: it gives what was computed."""
    return result


def install() -> None:
    """Let functions of libraries be computed by numpy, and be where the device has them."""
    from . import builder

    interpreter.InterpreterBuilder.create_extern_elementwise = _extern
    interpreter.InterpreterBuilder.create_libdevice = builder.around("create_libdevice", _note)
    _names_without_functions()
    if not hasattr(math, "tanh") and limits.ENFORCED:
        math.tanh = _tensor_function("tanh")  # as triton-ascend sets it
    if limits.ENFORCED:
        _forget_foreign()
        return
    for name in _FOREIGN:
        module = sys.modules.get(f"{name}.libdevice")
        if module is not None:
            with_semantic(module)
