"""Functions of the libraries of devices (libdevice of CUDA, of CANN), by numpy: name -> what it gives of arrays.

Numbers are those of the CPU, not of a device: the functions that a device computes roughly (`fast_expf`) are exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np


def _each(function: Callable[..., float]) -> Callable[..., Any]:
    """A function of Python's numbers over arrays; nan where it is not defined."""

    def value(*numbers: float) -> float:
        try:
            return function(*numbers)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return np.vectorize(value, otypes=[np.float64])


def _inverse_error(y: Any) -> Any:
    """By Newton's method from a rational first guess (Winitzki); good to float32."""
    y = np.asarray(y, np.float64)
    inside = np.clip(y, -1 + 1e-16, 1 - 1e-16)
    logarithm = np.log1p(-inside * inside)
    half = 2 / (math.pi * 0.147) + logarithm / 2
    x = np.sign(inside) * np.sqrt(np.sqrt(half * half - logarithm / 0.147) - half)
    error = _each(math.erf)
    for _ in range(3):
        x = x - (error(x) - inside) * math.sqrt(math.pi) / 2 * np.exp(x * x)
    return np.where(np.abs(y) < 1, x, np.where(np.abs(y) == 1, np.sign(y) * np.inf, np.nan))


def _round_away(x: Any) -> Any:
    return np.trunc(x + np.copysign(0.5, x))


def _bits(x: Any, kind: Any) -> Any:
    return np.ascontiguousarray(x).view(kind)


UNARY: dict[str, Callable[..., Any]] = {
    "abs": np.abs, "fabs": np.abs, "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
    "atan": np.arctan, "atanh": np.arctanh, "cbrt": np.cbrt, "ceil": np.ceil, "cos": np.cos, "cosh": np.cosh,
    "cospi": lambda x: np.cos(np.pi * x), "cyl_bessel_i0": np.i0, "erf": _each(math.erf), "erfc": _each(math.erfc),
    "erfinv": _inverse_error, "exp": np.exp, "exp10": lambda x: np.power(10.0, x), "exp2": np.exp2, "expm1": np.expm1,
    "floor": np.floor, "gamma": _each(math.gamma), "tgamma": _each(math.gamma), "lgamma": _each(math.lgamma),
    "ilogb": lambda x: np.frexp(x)[1] - 1, "logb": lambda x: (np.frexp(x)[1] - 1).astype(np.float64),
    "isinf": np.isinf, "isnan": np.isnan, "finitef": np.isfinite, "isfinited": np.isfinite, "isfinite": np.isfinite,
    "log": np.log, "log10": np.log10, "log1p": np.log1p, "log2": np.log2, "nearbyint": np.rint, "rint": np.rint,
    "normcdf": lambda x: 0.5 * _each(math.erfc)(-x / math.sqrt(2)), "reciprocal": lambda x: 1 / x,
    "relu": lambda x: np.maximum(x, 0), "round": _round_away, "llrint": np.rint, "llround": _round_away,
    "rsqrt": lambda x: 1 / np.sqrt(x), "saturatef": lambda x: np.clip(x, 0, 1), "signbit": np.signbit, "sin": np.sin,
    "sinh": np.sinh, "sinpi": lambda x: np.sin(np.pi * x), "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh,
    "trunc": np.trunc, "fast_expf": np.exp, "fast_exp10f": lambda x: np.power(10.0, x), "fast_logf": np.log,
    "fast_log2f": np.log2, "fast_log10f": np.log10, "fast_sinf": np.sin, "fast_cosf": np.cos, "fast_tanf": np.tan,
    "fast_tanhf": np.tanh, "float_as_int": lambda x: _bits(x, np.int32), "int_as_float": lambda x: _bits(x, np.float32),
    "sqrt_rn": np.sqrt, "popc": lambda x: np.vectorize(lambda n: bin(int(n) & 0xFFFFFFFF).count("1"))(x),
}  # fmt: skip
BINARY: dict[str, Callable[..., Any]] = {
    "atan2": np.arctan2, "copysign": np.copysign, "fdim": lambda x, y: np.maximum(x - y, 0), "fmod": np.fmod,
    "hypot": np.hypot, "nextafter": np.nextafter, "pow": np.power, "fast_powf": np.power, "remainder": np.remainder,
    "max": np.fmax, "min": np.fmin, "fmax": np.fmax, "fmin": np.fmin, "ldexp": np.ldexp, "scalbn": np.ldexp,
    "fast_dividef": np.divide, "fdiv": np.divide, "add_rn": np.add, "sub_rn": np.subtract, "mul_rn": np.multiply,
    **dict.fromkeys(("div_rn", "div_rz", "div_rd", "div_ru"), np.divide),
}  # fmt: skip
TERNARY: dict[str, Callable[..., Any]] = {"fma": lambda x, y, z: x * y + z, "fma_rn": lambda x, y, z: x * y + z}


def function(name: str, operands: int) -> Callable[..., Any] | None:
    """The function of that name and so many operands; None for one that is not known."""
    table = {1: UNARY, 2: BINARY, 3: TERNARY}.get(operands, {})
    if name not in table and name.endswith("f"):
        name = name[:-1]
    return table.get(name)
