"""One tensor beside that of another dump: figures, metrics, and the elements that differ most.

The columns are those of msaccucmp's comparison of one operator: index, position, both values, absolute and relative
error (|NPU - bench| / |bench|), by absolute and by relative error.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from transplt.base.render.cell import figure
from transplt.precision.difference_kinds import how
from transplt.precision.elements import Array, elements, numpy_or_sentence
from transplt.precision.judgement import value_of
from transplt.precision.match import pairs
from transplt.precision.metrics import measure, measured
from transplt.precision.record import Record, Row, Tensor


@dataclass(frozen=True, slots=True)
class Element:
    """One element: its index in the flattened tensor, its position, both values, and how far they are apart."""

    index: int
    position: tuple[int, ...]
    npu: float
    bench: float
    absolute: float
    relative: float


@dataclass(slots=True)
class Beside:
    """One tensor on both sides. `figures` are (what, NPU, bench); `metrics` (name, value) where there are elements."""

    name: str
    how: str
    figures: list[tuple[str, str, str]]
    metrics: list[tuple[str, str]] = field(default_factory=list)
    by_absolute: list[Element] = field(default_factory=list)
    by_relative: list[Element] = field(default_factory=list)
    size: int = 0
    apart: int = 0


def beside(npu: tuple[Record, Row], bench: tuple[Record, Row], top: int) -> Iterator[Beside]:
    """Each tensor that both operators have, in order, with the elements where both dumps have them; then the arguments
    that are no tensors.
    """
    for one, other in zip_tensors(npu[1], bench[1]):
        sides = [(t.dtype, t.shape, t.digest, *map(str, (t.max, t.min, t.mean, t.norm))) for t in (one, other)]
        same = sides[0] == sides[1]
        rows = [("dtype", one.dtype, other.dtype), ("shape", str(list(one.shape)), str(list(other.shape)))]
        for what in ("max", "min", "mean", "norm"):
            values = getattr(one, what), getattr(other, what)
            if values != (None, None):
                one_text, other_text = ("-" if value is None else repr(value) for value in values)
                rows.append((what, one_text, other_text))
        found = Beside(one.name, "", rows)
        arrays = [elements(record, tensor) for record, tensor in ((npu[0], one), (bench[0], other))]
        if arrays[0] is not None and arrays[1] is not None:
            both = arrays[0], arrays[1]
            _measure(found, *both, top)
            same = not found.apart and one.shape == other.shape
            found.how = "the same" if same else how(one, other, measured(*both))
        else:
            found.how = "the same figures" if same else how(one, other)
        yield found
    yield from _plain_arguments(npu[1], bench[1])


def _plain_arguments(npu: Row, bench: Row) -> Iterator[Beside]:
    """Numbers, words and truth; where a device is named, the two may differ."""
    ours, theirs = ({each.name: value_of(each) for each in row.inputs if not each.is_tensor} for row in (npu, bench))
    for name in dict.fromkeys((*ours, *theirs)):
        one, other = (side.get(name, "not given") for side in (ours, theirs))
        same = one == other or any(device in f"{one} {other}" for device in ("npu", "cuda", "cpu"))
        yield Beside(name, "the same" if same else f"{one} and not {other}", [("value", one, other)])


def zip_tensors(npu: Row, bench: Row) -> Iterator[tuple[Tensor, Tensor]]:
    """The tensors of two operators that belong together: inputs, parameters, outputs."""
    for one, other in ((npu.inputs, bench.inputs), (npu.parameters, bench.parameters), (npu.outputs, bench.outputs)):
        yield from ((a, b) for a, b in pairs(one, other) if a.is_tensor)


def _measure(found: Beside, npu: Array, bench: Array, top: int) -> None:
    np = numpy_or_sentence()
    metrics = measure(npu, bench)
    if metrics.error and npu.shape != bench.shape:
        return
    measures = (
        ("Cosine", metrics.cosine), ("MaxAbsError", metrics.max_absolute), ("RMSE", metrics.root_mean_square),
        ("MeanAbsError", metrics.mean_absolute), ("RelativeEuclidean", metrics.relative_euclidean),
        ("MaxRelativeError", metrics.max_relative),
    )  # fmt: skip
    found.metrics = [(name, figure(value)) for name, value in measures if not math.isnan(value)]
    kind = np.complex128 if npu.dtype.kind == "c" or bench.dtype.kind == "c" else np.float64
    n, b = npu.reshape(-1).astype(kind), bench.reshape(-1).astype(kind)
    with np.errstate(all="ignore"):
        absolute = np.abs(n - b)
        absolute[(n == b) | (np.isnan(n) & np.isnan(b))] = 0.0
        absolute[np.isnan(absolute)] = np.inf
        relative = np.where(absolute == 0, 0.0, absolute / np.abs(b))
    found.size, found.apart = int(n.size), int(np.count_nonzero(absolute))
    for errors, kept in ((absolute, found.by_absolute), (relative, found.by_relative)):
        for index in _largest(errors, min(top, found.apart)):
            position = tuple(map(int, np.unravel_index(index, npu.shape))) if npu.ndim else ()
            mine, theirs = (float(np.real(each[index])) for each in (n, b))
            kept.append(Element(index, position, mine, theirs, float(absolute[index]), float(relative[index])))


def _largest(errors: Array, number: int) -> Sequence[int]:
    """The places of the largest, the largest first; equal ones in their order."""
    np = numpy_or_sentence()
    if number <= 0:
        return []
    some = np.argpartition(-errors, number - 1)[:number] if number < errors.size else np.arange(errors.size)
    return [int(index) for index in sorted(some[:number], key=lambda index: (-errors[index], index))]


def largest_elements(array: Array, top: int) -> Iterator[tuple[tuple[int, ...], float]]:
    """(position, value) of the elements that are largest without their sign; what is not finite comes first."""
    np = numpy_or_sentence()
    flat = np.abs(array.reshape(-1).astype(np.complex128 if array.dtype.kind == "c" else np.float64))
    flat[~np.isfinite(flat)] = np.inf
    for index in _largest(flat, min(top, flat.size)):
        position = tuple(map(int, np.unravel_index(index, array.shape))) if array.ndim else ()
        yield position, float(np.real(array.reshape(-1)[index]))


def counted(array: Array) -> dict[str, int]:
    """How many elements are special."""
    np = numpy_or_sentence()
    if array.dtype.kind not in "fc":
        return {"zero": int(array.size - np.count_nonzero(array))}
    return {
        "nan": int(np.count_nonzero(np.isnan(array))),
        "infinite": int(np.count_nonzero(np.isinf(array))),
        "zero": int(array.size - np.count_nonzero(array)),
    }
