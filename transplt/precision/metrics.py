"""The figures by which tools of Ascend measure how far two tensors are apart, from their elements, in float64.

The ten of msaccucmp by its definitions, the thousandth ratios of msprobe, and the cosine's companions that show how two
tensors differ. Both sides are flattened; no axis is treated apart. Source: msaccucmp and msprobe in mindstudio-probe
26.2.0; msaccucmp computes in float32, so the last of the six digits that it prints may differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from transplt.precision.elements import Array, numpy_or_sentence

#: Machine epsilon of float64: smaller values count as zero, as they do there, whatever the type of the data.
EPSILON = 2.0**-52
#: That of float32: no probability of the Kullback-Leibler divergence is smaller.
_LEAST = 2.0**-23
#: So many elements at once: from 10,000 on OpenBLAS starts threads for a dot product, which cost more than it does.
_CHUNK = 1 << 13
#: Two that are so far apart, as a share of the bench's norm, have a cosine above 0.99.
_NEAR = 0.1
NAN = math.nan


@dataclass(slots=True)
class Metrics:
    """nan where a metric is not defined for such data."""

    cosine: float = NAN
    max_absolute: float = NAN
    accumulated_relative: float = NAN
    relative_euclidean: float = NAN
    kullback_leibler: float = NAN
    npu_mean: float = NAN
    npu_deviation: float = NAN
    bench_mean: float = NAN
    bench_deviation: float = NAN
    mean_absolute: float = NAN
    root_mean_square: float = NAN
    max_relative: float = NAN
    mean_relative: float = NAN
    one_thousandth: float = NAN  #: the share of elements whose relative error is below 0.001
    five_thousandths: float = NAN
    #: For the verdict: the norms of the difference, of both sides, and what the NPU's side is times the bench's.
    difference_norm: float = NAN
    npu_norm: float = NAN
    bench_norm: float = NAN
    scale: float = NAN
    error: str = ""  #: why there are none

    @property
    def standard_deviation(self) -> str:
        """As msaccucmp writes it: `(mean;deviation),(mean;deviation)`, NPU first."""
        both = (self.npu_mean, self.npu_deviation), (self.bench_mean, self.bench_deviation)
        return ",".join(f"({_thousandths(mean)};{_thousandths(deviation)})" for mean, deviation in both)


def _thousandths(value: float) -> str:
    return f"{value if abs(value) >= 0.001 else 0.0:.3f}"


def measure(npu: Array, bench: Array) -> Metrics:
    """The metrics of two arrays; with `error` and no figures where their shapes differ or there is nothing in them.

    What is not finite at the same places of both counts as 0 there; at different places there are no figures.
    """
    np = numpy_or_sentence()
    if npu.shape != bench.shape:
        return Metrics(error="the shapes differ")
    if npu.size == 0:
        return Metrics(error="there are no elements")
    truth = npu.dtype == bool and bench.dtype == bool
    single = npu.size == 1
    n, b = npu.reshape(-1), bench.reshape(-1)
    if np.iscomplexobj(n) or np.iscomplexobj(b):
        n, b = (np.ascontiguousarray(each, dtype=np.complex128).view(np.float64) for each in (n, b))
    sums = _Sums()
    with np.errstate(all="ignore"):
        for start in range(0, n.size, _CHUNK):
            sums.add(np, *_chunk(np, n, b, start))
            if sums.apart:
                return Metrics(error="values are not finite at different places")
        found = sums.metrics(n.size)
        if single:
            found.cosine = 1.0
        if truth:
            return Metrics(cosine=found.cosine, relative_euclidean=found.relative_euclidean)
        found.kullback_leibler = _kullback_leibler(np, n, b, sums)
    return found


class Measured:
    """Two arrays whose distance is known; the other figures are worked out, from the files, where somebody asks."""

    def __init__(self, difference_norm: float, bench_norm: float, arrays: Callable[[], tuple[Array, Array]]) -> None:
        self.difference_norm, self.bench_norm, self._arrays = difference_norm, bench_norm, arrays

    @property
    def error(self) -> str:
        """Why there are no figures."""
        return "" if self.difference_norm == self.difference_norm else self.figures.error

    @property
    def near(self) -> bool:
        """Whether they are so near that their cosine is above 0.99."""
        return self.difference_norm <= _NEAR * self.bench_norm

    @cached_property
    def figures(self) -> Metrics:
        """All of them."""
        return measure(*self._arrays())

    @cached_property
    def other_order(self) -> bool:
        """Whether both hold the same values, in another order."""
        np = numpy_or_sentence()
        ours, theirs = self._arrays()
        return bool(np.array_equal(np.sort(ours, axis=None), np.sort(theirs, axis=None)))


def measured(npu: Array, bench: Array, read_again: Callable[[], tuple[Array, Array]] | None = None) -> Measured:
    """The distance of two arrays, which are kept where nothing reads them again."""
    arrays = read_again or (lambda: (npu, bench))
    if npu.shape == bench.shape and npu.size and npu.dtype.kind in "fiu" and bench.dtype.kind in "fiu":
        np = numpy_or_sentence()
        n, b = npu.reshape(-1), bench.reshape(-1)
        gap = size = 0.0
        with np.errstate(all="ignore"):
            for start in range(0, n.size, _CHUNK):
                theirs = b[start : start + _CHUNK].astype("f8")
                difference = np.subtract(n[start : start + _CHUNK], theirs, dtype="f8")
                gap += float(difference @ difference)
                size += float(theirs @ theirs)
        if math.isfinite(gap) and math.isfinite(size):
            return Measured(math.sqrt(gap), math.sqrt(size), arrays)
    found = Measured(NAN, NAN, arrays)
    found.figures = measure(npu, bench)
    found.difference_norm, found.bench_norm = found.figures.difference_norm, found.figures.bench_norm
    return found


def _chunk(np: Any, n: Array, b: Array, start: int) -> tuple[Array, Array]:
    return n[start : start + _CHUNK].astype("f8"), b[start : start + _CHUNK].astype("f8")


class _Sums:
    def __init__(self) -> None:
        self.apart = False
        self.nn = self.bb = self.nb = self.dd = self.d = self.n = self.b = self.relative = 0.0
        self.max_d = self.max_relative = 0.0
        self.one = self.five = 0
        self.n_least = self.b_least = math.inf
        self.n_most = self.b_most = -math.inf

    def add(self, np: Any, n: Array, b: Array) -> None:
        absolute, isfinite = np.abs, np.isfinite
        nn, bb = float(n @ n), float(b @ b)
        if not (math.isfinite(nn) and math.isfinite(bb)):
            good = isfinite(n)
            if not bool((good == isfinite(b)).all()):
                self.apart = True
                return
            n[~good] = b[~good] = 0.0
            nn, bb = float(n @ n), float(b @ b)
        self.nn += nn
        self.bb += bb
        self.nb += float(n @ b)
        self.n += float(n.sum())
        self.b += float(b.sum())
        self.n_least, self.n_most = min(self.n_least, float(n.min())), max(self.n_most, float(n.max()))
        self.b_least, self.b_most = min(self.b_least, float(b.min())), max(self.b_most, float(b.max()))
        d = absolute(n - b)
        self.dd += float(d @ d)
        self.d += float(d.sum())
        self.max_d = max(self.max_d, float(d.max()))
        size = absolute(b)
        counted = size > EPSILON
        if counted.all():
            r = d / size
            thousandths = r
        else:
            r = d / size
            r[~counted] = 0.0
            thousandths = absolute(d / (b + (b == 0) * EPSILON))
        self.relative += float(r.sum())
        self.max_relative = max(self.max_relative, float(r.max()))
        self.one += int((thousandths < 0.001).sum())
        self.five += int((thousandths < 0.005).sum())

    def metrics(self, size: int) -> Metrics:
        npu, bench = math.sqrt(self.nn), math.sqrt(self.bb)
        small = (npu <= EPSILON) + (bench <= EPSILON)
        return Metrics(
            cosine=1.0 if small == 2 else NAN if small else min(self.nb / npu / bench, 1.0),
            max_absolute=self.max_d,
            accumulated_relative=self.relative,
            relative_euclidean=math.sqrt(self.dd / self.bb) if bench > EPSILON else 0.0,
            npu_mean=self.n / size,
            bench_mean=self.b / size,
            mean_absolute=self.d / size,
            root_mean_square=math.sqrt(self.dd / size),
            max_relative=self.max_relative,
            mean_relative=self.relative / size,
            one_thousandth=self.one / size,
            five_thousandths=self.five / size,
            difference_norm=math.sqrt(self.dd),
            npu_norm=npu,
            bench_norm=bench,
            scale=self.nb / self.bb if bench > EPSILON else NAN,
            npu_deviation=math.sqrt(max(self.nn / size - (self.n / size) ** 2, 0.0)),
            bench_deviation=math.sqrt(max(self.bb / size - (self.b / size) ** 2, 0.0)),
        )


def _kullback_leibler(np: Any, n: Array, b: Array, sums: _Sums) -> float:
    """Of both sides, each moved to [0, 1] and divided by its sum: of positions, not of histograms."""
    isfinite, log, maximum = np.isfinite, np.log, np.maximum
    total_n = total_b = mixed = 0.0
    for start in range(0, n.size, _CHUNK):
        p, q = _chunk(np, n, b, start)
        if not math.isfinite(float(p.sum())):
            p[~isfinite(p)] = 0.0
            q[~isfinite(q)] = 0.0
        p, q = _rescaled(p, sums.n_least, sums.n_most), _rescaled(q, sums.b_least, sums.b_most)
        maximum(p, _LEAST, out=p)
        maximum(q, _LEAST, out=q)
        total_n += float(p.sum())
        total_b += float(q.sum())
        mixed += float(p @ log(p / q))
    one, other = mixed / total_n, math.log(total_b / total_n)
    # What is left of two that cancel is rounding.
    return 0.0 if abs(one + other) < 8 * EPSILON * max(1.0, abs(one)) else one + other


def _rescaled(values: Array, least: float, most: float) -> Array:
    return (values - least) / (most - least) if most > least else values
