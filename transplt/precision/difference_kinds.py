"""In which way two tensors differ: scaled, of the other sign, rounded, not finite, other data."""

from __future__ import annotations

import math
import struct
from functools import partial

from transplt.base.render.cell import figure
from transplt.precision.distance import FLOAT16_MAX, largest
from transplt.precision.metrics import Measured
from transplt.precision.record import Tensor

#: A scale is reported where all figures agree on it to this share of how far it is from 1.
_AGREE = 0.05
_DIRECTION = 0.99
_ROUNDING = 0.02


def how(npu: Tensor, bench: Tensor, metrics: Measured | None = None) -> str:
    """A clause: `scaled by 1.02`. With `metrics`, from the elements, else from the four figures."""
    if npu.shape != bench.shape:
        return f"of shape {list(npu.shape)} and not {list(bench.shape)}"
    if (clause := not_finite(npu)) and not not_finite(bench):
        return clause
    if npu.dtype != bench.dtype:
        return f"in {npu.dtype} and not in {bench.dtype}"
    if metrics is not None and not metrics.figures.error:
        return _by_elements(npu, bench, metrics)
    return _by_figures(npu, bench)


def not_finite(tensor: Tensor) -> str:
    """`nan`, `infinite (-inf to 3)`, or `as large as float16 can be`, as a clause; empty for other tensors."""
    values = [value for value in (tensor.max, tensor.min, tensor.mean, tensor.norm) if value is not None]
    if any(value != value for value in values):
        return "nan"
    if any(math.isinf(value) for value in (tensor.max, tensor.min) if value is not None):
        return f"infinite ({extent(tensor)})"
    if tensor.dtype == "float16" and largest(tensor) >= FLOAT16_MAX:
        return f"as large as float16 can be ({figure(FLOAT16_MAX)})"
    return ""


def extent(tensor: Tensor) -> str:
    """`-0.5 to 2`: the smallest and the largest element."""
    return f"{figure(tensor.min or 0.0)} to {figure(tensor.max or 0.0)}"


def _by_elements(npu: Tensor, bench: Tensor, measured: Measured) -> str:
    metrics = measured.figures
    cosine, scale = metrics.cosine, metrics.scale
    if npu.size > 1 and metrics.difference_norm > 0 and measured.other_order:
        return "another order of the same values"
    if metrics.npu_norm == 0 and metrics.bench_norm > 0:
        return "all zero"
    if cosine < -_DIRECTION:
        return f"of the other sign{_times(-scale)}"
    if cosine < _DIRECTION:
        return f"of another direction (cosine {figure(cosine, 4)})"
    # What is left of the distance once the scale is taken out.
    left = math.sqrt(max(metrics.difference_norm**2 - ((scale - 1) * metrics.bench_norm) ** 2, 0.0))
    if left < 0.3 * metrics.difference_norm:
        return f"scaled by {figure(scale, 4)}"
    if half := _rounded(npu, bench):
        return half
    if metrics.relative_euclidean < _ROUNDING:
        return f"rounded differently (relative distance {figure(metrics.relative_euclidean, 3)})"
    return f"of other values (relative distance {figure(metrics.relative_euclidean, 3)}, cosine {figure(cosine, 6)})"


def _by_figures(npu: Tensor, bench: Tensor) -> str:
    if None in (npu.max, npu.min, bench.max, bench.min):
        return "of other values"
    if largest(npu) == 0 < largest(bench):
        return "all zero"
    mirrored = npu._replace(max=-(npu.min or 0.0), min=-(npu.max or 0.0))
    if npu.max != npu.min and _same(mirrored, bench) and not _same(npu, bench):
        return "of the other sign"
    ratios = [
        one / other
        for one, other in ((npu.norm, bench.norm), (npu.max, bench.max), (npu.min, bench.min), (npu.mean, bench.mean))
        if one is not None and other is not None and abs(other) > 1e-6 * largest(bench)
    ]
    if ratios and len(ratios) > 1:
        middle = sorted(ratios)[len(ratios) // 2]
        if abs(middle - 1) > 1e-6 and all(abs(ratio - middle) <= _AGREE * abs(middle - 1) for ratio in ratios):
            return f"scaled by {figure(middle, 4)}" if middle > 0 else f"of the other sign{_times(-middle)}"
    if held := _held(npu, bench):
        return held
    if half := _rounded(npu, bench):
        return half
    apart = max(abs(ratio - 1) for ratio in ratios) if ratios else math.inf
    return f"rounded differently (figures within {figure(apart, 2)})" if apart < _ROUNDING else "of other values"


def _same(one: Tensor, other: Tensor) -> bool:
    size = largest(other)
    return all(
        a is not None and b is not None and abs(a - b) <= 1e-3 * size
        for a, b in ((one.max, other.max), (one.min, other.min))
    )


def _times(scale: float) -> str:
    return "" if abs(scale - 1) < 1e-3 else f" and scaled by {figure(scale, 4)}"


def _held(npu: Tensor, bench: Tensor) -> str:
    """Where the largest or the smallest element of one side lies closer to 0, at a number of few digits, as of a clamp.
    """
    if None in (npu.max, npu.min, bench.max, bench.min):
        return ""
    for one, other, clause in ((npu, bench, "held"), (bench, npu, "not held")):
        assert one.max is not None and one.min is not None and other.max is not None and other.min is not None
        high = one.max < other.max and _is_short(one.max)
        low = one.min > other.min and _is_short(one.min)
        if high and low:
            sure = one.max == -one.min
        else:
            kept = (one.min, other.min) if high else (one.max, other.max)
            sure = abs(kept[0] - kept[1]) <= 1e-5 * largest(other)
        if (high or low) and sure and (one.norm is None or other.norm is None or one.norm < other.norm):
            ends = [f"below {figure(one.max)}"] * high + [f"above {figure(one.min)}"] * low
            return f"{clause} {' and '.join(ends)}"
    return ""


def _is_short(value: float | None) -> bool:
    """Whether a number is a float32 that somebody wrote: 0.75, -3, 1e-05."""
    if value is None or not math.isfinite(value):
        return False
    return abs(float(f"{value:.3g}") - value) <= 2.0**-23 * abs(value)


def _rounded(npu: Tensor, bench: Tensor) -> str:
    """Where the extremes of one side are numbers of a coarser type, and those of the other are not."""
    if npu.dtype != "float32" or bench.dtype != "float32":
        return ""
    for name in ("bfloat16", "float16"):
        fits = partial(_is_one_of, name)
        ours = [value for value in (npu.max, npu.min) if value]
        theirs = [value for value in (bench.max, bench.min) if value]
        if ours and all(map(fits, ours)) and theirs and not all(map(fits, theirs)) and _near(npu, bench):
            return f"rounded to {name}"
    return ""


def _near(npu: Tensor, bench: Tensor) -> bool:
    """Whether all figures are as near to each other as rounding to 8 bits leaves them."""
    size = largest(bench)
    both = ((npu.max, bench.max, size), (npu.min, bench.min, size), (npu.norm, bench.norm, bench.norm or size))
    return all(one is None or other is None or abs(one - other) <= 2.0**-7 * of for one, other, of in both)


def _is_one_of(name: str, value: float) -> bool:
    """Whether a type of 16 bits holds a value as it is."""
    form = ">e" if name == "float16" else ">f"
    try:
        held = struct.pack(form, value)
    except OverflowError:
        return False
    return bool(struct.unpack(form, held)[0] == value) and (name == "float16" or held[2:] == b"\0\0")
