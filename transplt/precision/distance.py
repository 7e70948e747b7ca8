"""How far two tensors are apart: by their elements where both sides have them, else by their figures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from transplt.precision.metrics import Measured
from transplt.precision.record import Tensor

#: Relative L2 distance of one operator that counts as rounding. float16 has 11 bits, bfloat16 8: a sum of products
#: is off by a few units in the last place, and a step of float32 on two devices by some 1e-6.
TOLERANCES: Mapping[str, float] = {
    "float64": 1e-8, "complex128": 1e-8, "float32": 1e-4, "complex64": 1e-4, "float16": 5e-3, "bfloat16": 1e-2,
    "float8_e4m3fn": 0.1, "float8_e5m2": 0.2, "hifloat8": 0.2,
}  # fmt: skip
#: The largest value of float16.
FLOAT16_MAX = 65504.0
#: What a gradient may be off, as a share of those beside it: that of a bias in front of a norm is nothing but rounding.
_BESIDE = 0.1
#: That of the largest gradient of a step: with the tolerance of float32 a millionth of it, what its sums are off.
_FLOOR = 0.01


def tolerance(npu: Tensor, bench: Tensor, given: float | None) -> float:
    """That of the coarser of both types; 0 for integers and truth."""
    if npu.dtype not in TOLERANCES and bench.dtype not in TOLERANCES:
        return 0.0
    return given if given is not None else max(TOLERANCES.get(npu.dtype, 0.0), TOLERANCES.get(bench.dtype, 0.0))


def largest(tensor: Tensor) -> float:
    """The largest absolute value; nan where it is nan, 0 where nothing is known."""
    if tensor.max is None or tensor.min is None:
        return tensor.norm or 0.0
    return max(abs(tensor.max), abs(tensor.min)) if tensor.max == tensor.max else tensor.max


def overflows(tensor: Tensor) -> bool:
    """Whether a tensor holds what is not finite, or a float16 that is as large as can be."""
    if tensor.max is None or tensor.min is None:
        return not tensor.finite
    if not (math.isfinite(tensor.max) and math.isfinite(tensor.min)):
        return True
    return tensor.dtype == "float16" and (tensor.max >= FLOAT16_MAX or tensor.min <= -FLOAT16_MAX)


def beside(tensors: Sequence[Tensor], phase: str) -> float:
    """The size that gradients of one operator share: their distances are no smaller than a share of it."""
    if phase != "backward" or len(tensors) < 2:
        return 0.0
    sizes = [size for tensor in tensors if math.isfinite(size := largest(tensor))]
    return _BESIDE * max(sizes, default=0.0)


def floor(gradients: Iterable[Tensor]) -> float:
    """The size below which a gradient of a parameter is nothing but rounding: a share of the largest of the step."""
    return _FLOOR * max((size for each in gradients if math.isfinite(size := largest(each))), default=0.0)


def by_figures(npu: Tensor, bench: Tensor, least: float = 0.0) -> float:
    """The largest relative difference of maximum, minimum, mean and norm; `least` is the smallest size that counts.

    0 where no figure is known on both sides, inf where one side is not a number or the shapes differ.
    """
    if npu.digest is not None and bench.digest is not None:
        return 0.0 if npu.digest == bench.digest else math.inf
    if npu.shape != bench.shape:
        return math.inf
    if npu[3:7] == bench[3:7]:
        return 0.0
    size = max(largest(bench), least)
    if math.isinf(size):  # a mask of -inf: what is left of the tensor is as large as its finite end
        size = max(least, *(abs(end) for end in (bench.max, bench.min) if end is not None and math.isfinite(end)), 0.0)
    worst = 0.0
    for one, other, scale in (
        (npu.max, bench.max, size),
        (npu.min, bench.min, size),
        (npu.mean, bench.mean, size),
        (npu.norm, bench.norm, max(bench.norm or 0.0, least * math.sqrt(bench.size))),
    ):
        if one is None or other is None or one == other or (one != one and other != other):
            continue
        gap = abs(one - other)
        if not math.isfinite(gap):
            return math.inf
        worst = max(worst, gap / scale if scale > 0 and math.isfinite(scale) else math.inf)
    return worst


def apart(npu: Tensor, bench: Tensor, least: float = 0.0, metrics: Measured | None = None) -> float:
    """The relative L2 distance of the elements, where there are `metrics` of them; else by the figures."""
    if metrics is None:
        return by_figures(npu, bench, least)
    gap, size = metrics.difference_norm, metrics.bench_norm
    if gap != gap:  # truth has no differences, only a distance
        return by_figures(npu, bench, least) if metrics.figures.error else metrics.figures.relative_euclidean
    size = max(size, least * math.sqrt(npu.size))
    return gap / size if size > 0 else math.inf if gap > 0 else 0.0
