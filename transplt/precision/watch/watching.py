"""Step by step through a dump: which watch points are hit, where first, and how often."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from transplt.base.render.cell import figure
from transplt.precision.difference_kinds import extent, not_finite
from transplt.precision.distance import largest, overflows
from transplt.precision.record import GRADIENT, OPTIMIZER, Dump, Part, Record, Row, Tensor
from transplt.precision.watch import given, roles
from transplt.precision.watch.flow import Flow
from transplt.precision.watch.points import Point

#: So many hits of a watch point are kept with their places; the others are counted.
MOST_HITS = 1_000
#: An activation whose elements all lie so near to one end of its range learns nothing.
_SATURATED = 1e-3
#: Rounding may carry an activation so far beyond its range, as a share of the range or of 1.
_ROUNDING = 1e-2
#: The size of a weight is no smaller than this share of those of the same operator, where its change is looked at.
_BESIDE = 0.1
#: Gradients below this share of those of the same operator are nothing but rounding.
_NOISE = 1e-5


@dataclass(frozen=True, slots=True)
class Hit:
    """A watch point at one tensor. `why` is a clause with its figures, `frames` the stack, innermost first."""

    point: str
    dump: str
    step: int
    rank: int
    row: str
    tensor: str
    why: str
    frames: tuple[str, ...] = ()


@dataclass(slots=True)
class Watched:
    """What came out: hits in the order in which they happened, by watch point, and how many there are."""

    points: tuple[Point, ...]
    hits: dict[str, list[Hit]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    steps: set[int] = field(default_factory=set)
    ranks: set[int] = field(default_factory=set)
    tensors: int = 0
    remarks: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Before:
    """The figures of the step before, of one rank."""

    weights: dict[tuple[str, str], Tensor] = field(default_factory=dict)
    gradients: dict[tuple[str, str], float] = field(default_factory=dict)
    data: dict[str, Tensor] = field(default_factory=dict)


def watch(
    dumps: Iterable[Dump], points: Sequence[Point], limits: Mapping[str, float], between: tuple[float, float]
) -> Watched:
    """Looks at all steps and ranks of dumps. UnusableDump where a file cannot be read.

    `limits` are the bounds by the name of the watch point, `between` that of tensor-range.
    """
    watched = Watched(tuple(points))
    for dump in dumps:
        before: dict[int, _Before] = {}
        for (step, rank), part in sorted(dump.parts.items()):
            record = part.read()
            looked = _Step(watched, limits, between, dump.path, step, rank, part)
            looked.look(record, before.setdefault(rank, _Before()))
            watched.steps.add(step)
            watched.ranks.add(rank)
        if len(dump.steps) < 2 and any("change" in point.name for point in points):
            watched.remarks.append(f"{dump.path} has one step: whether weights change needs two")
    if not watched.tensors:
        watched.remarks.append("no figures of tensors are in it: dump with the task statistics (not md5)")
    return watched


@dataclass(slots=True)
class _Step:
    watched: Watched
    limits: Mapping[str, float]
    between: tuple[float, float]
    dump: str
    step: int
    rank: int
    part: Part
    _stacks: Mapping[str, tuple[str, ...]] | None = None

    def look(self, record: Record, before: _Before) -> None:
        wanted = {point.name for point in self.watched.points}
        self.watched.tensors += sum(roles.is_floating(tensor) for row in record.rows for tensor in row.tensors)
        if wanted & {"operator-overflow", "overflow"}:
            self._overflows(record, wanted)
        if wanted & {"label-range", "constant-data", "repeated-data"}:
            self._given(record, before, wanted)
        for row, tensor in roles.outputs(record):
            self._output(row, tensor, wanted)
        sizes: dict[str, float] = {}
        for (name, _), tensor in before.weights.items():
            sizes[name] = max(sizes.get(name, 0.0), largest(tensor))
        weights = {(row.name, tensor.name): (row, tensor) for row, tensor in roles.weights(record)}
        for key, (row, tensor) in weights.items():
            self._weight(row, tensor, before.weights.get(key), wanted, _BESIDE * sizes.get(row.name, 0.0))
        gradients = [*roles.gradients(record)]
        beside: dict[str, float] = {}
        for row, tensor in gradients:
            beside[row.name] = max(beside.get(row.name, 0.0), _norm(tensor))
        for row, tensor in gradients:
            norm = _norm(tensor)
            self._gradient(row, tensor, norm, before.gradients.get((row.name, tensor.name)), wanted, beside[row.name])
            before.gradients[row.name, tensor.name] = norm
        before.weights = {key: tensor for key, (_, tensor) in weights.items()}

    def _overflows(self, record: Record, wanted: set[str]) -> None:
        flow = Flow(record.parents)
        for row in record.rows:
            bad, came_in = flow.overflows(row)
            if "overflow" in wanted:
                for tensor in bad:
                    self._hit("overflow", row, tensor, extent_of(tensor))
            outputs = [tensor for tensor in row.outputs if tensor in bad]
            if "operator-overflow" in wanted and outputs and not came_in and row.kind not in (GRADIENT, OPTIMIZER):
                self._hit("operator-overflow", row, outputs[0], f"{extent_of(outputs[0])}, and its inputs are finite")

    def _given(self, record: Record, before: _Before, wanted: set[str]) -> None:
        for row in record.rows if "label-range" in wanted else ():
            if (found := given.labels_out_of_range(row)) is not None:
                self._hit("label-range", row, *found)
        data = {row.name: (row, tensor) for row, tensor in given.data(record)}
        for name, (row, tensor) in data.items():
            if "constant-data" in wanted and given.is_constant(tensor):
                self._hit("constant-data", row, tensor, extent_of(tensor))
            if "repeated-data" in wanted and tensor.max is not None and before.data.get(name) == tensor:
                self._hit("repeated-data", row, tensor, f"{extent_of(tensor)}, as in the step before")
        before.data = {name: tensor for name, (_, tensor) in data.items()}

    def _output(self, row: Row, tensor: Tensor, wanted: set[str]) -> None:
        size, low, high = largest(tensor), tensor.min or 0.0, tensor.max or 0.0
        if "all-zero" in wanted and size == 0 and tensor.size > 1 and not roles.hands_zeros_on(row):
            self._hit("all-zero", row, tensor, f"all {tensor.size} elements are 0")
        if "tensor-range" in wanted and (low < self.between[0] or high > self.between[1]):
            self._hit("tensor-range", row, tensor, f"{extent_of(tensor)}, outside {_range(self.between)}")
        self._size("tensor", row, tensor, size, wanted)
        if "activation-range" in wanted and (found := roles.activation(row)) is not None:
            name, ends = found
            room = _ROUNDING * (ends[1] - ends[0] if math.isfinite(ends[1] - ends[0]) else 1.0)
            if low < ends[0] - room or high > ends[1] + room:
                self._hit("activation-range", row, tensor, f"{extent_of(tensor)}; {name} gives {_range(ends)}")
            elif name in roles.SATURATE and (high < ends[0] + _SATURATED or low > ends[1] - _SATURATED):
                why = f"{extent_of(tensor)}: saturated, {name} gives {_range(ends)}"
                self._hit("activation-range", row, tensor, why)

    def _size(self, what: str, row: Row, tensor: Tensor, size: float, wanted: set[str]) -> None:
        large, small = f"{what}-too-large", f"{what}-too-small"
        if large in wanted and math.isfinite(size) and size > self.limits[large]:
            self._hit(large, row, tensor, f"|element| up to {figure(size)}, above {figure(self.limits[large])}")
        if small in wanted and 0 < size < self.limits[small]:
            self._hit(small, row, tensor, f"|element| up to {figure(size)}, below {figure(self.limits[small])}")

    def _weight(self, row: Row, tensor: Tensor, before: Tensor | None, wanted: set[str], least: float) -> None:
        """`least` is the smallest size that a change is a share of: that of a bias which begins at 0 says nothing."""
        if "weight-overflow" in wanted and overflows(tensor):
            self._hit("weight-overflow", row, tensor, extent_of(tensor))
        self._size("weight", row, tensor, largest(tensor), wanted)
        if before is None or before.shape != tensor.shape:
            return
        if (change := _change(before, tensor, least)) is None:
            return
        most, least = self.limits["weight-change-too-large"], self.limits["weight-change-too-small"]
        if change == 0:
            if "unchanged-weight" in wanted:
                self._hit("unchanged-weight", row, tensor, f"{extent_of(tensor)}, as in the step before")
        elif "weight-change-too-large" in wanted and change > most:
            self._hit("weight-change-too-large", row, tensor, f"changed by {figure(change, 3)} of it")
        elif "weight-change-too-small" in wanted and change < least:
            self._hit("weight-change-too-small", row, tensor, f"changed by {figure(change, 3)} of it")

    def _gradient(
        self, row: Row, tensor: Tensor, norm: float, before: float | None, wanted: set[str], beside: float
    ) -> None:
        """`beside` is the largest norm of the gradients of the same operator: that of a bias in front of a norm or a
        softmax is nothing but rounding."""
        times, most, least = (self.limits[f"gradient-{end}"] for end in ("exploding", "too-large", "vanishing"))
        if "gradient-exploding" in wanted:
            if not math.isfinite(norm) or overflows(tensor):
                self._hit("gradient-exploding", row, tensor, extent_of(tensor))
            elif before and norm > times * max(before, _NOISE * beside):
                why = f"norm {figure(norm, 4)}, {figure(norm / before, 3)} times that of the step before"
                self._hit("gradient-exploding", row, tensor, why)
        if "gradient-too-large" in wanted and math.isfinite(norm) and norm > most:
            self._hit("gradient-too-large", row, tensor, f"norm {figure(norm, 4)}, above {figure(most)}")
        if "gradient-vanishing" in wanted and math.isfinite(norm) and beside < least:
            self._hit("gradient-vanishing", row, tensor, f"norm {figure(norm, 4)}, below {figure(least)}")

    def _hit(self, point: str, row: Row, tensor: Tensor, why: str) -> None:
        self.watched.counts[point] = self.watched.counts.get(point, 0) + 1
        hits = self.watched.hits.setdefault(point, [])
        if len(hits) < MOST_HITS:
            if self._stacks is None:
                self._stacks = self.part.stacks()
            frames = self._stacks.get(row.name, ())
            hits.append(Hit(point, self.dump, self.step, self.rank, row.name, tensor.name, why, frames))


def _norm(tensor: Tensor) -> float:
    """The L2 norm; where the dump has none, its upper bound by the largest |element|."""
    return tensor.norm if tensor.norm is not None else largest(tensor) * math.sqrt(tensor.size)


def _change(before: Tensor, now: Tensor, least: float = 0.0) -> float | None:
    """How much the figures of a weight changed, as a share of them: at most what its elements did.

    None where they are not finite, or the weight was 0 and is no longer (as a new bias): a share of what?
    """
    pairs = ((before.max, now.max), (before.min, now.min), (before.mean, now.mean))
    scale = largest(before)
    known = [(one, other) for one, other in pairs if one is not None and other is not None]
    if not math.isfinite(scale) or not all(math.isfinite(each) for pair in known for each in pair):
        return None
    if scale == 0:
        return 0.0 if all(one == other for one, other in known) else None
    shares = [abs(one - other) / max(scale, least) for one, other in known]
    if before.norm and now.norm is not None:
        shares.append(abs(now.norm - before.norm) / max(before.norm, least * math.sqrt(before.size)))
    return max(shares, default=None)


def extent_of(tensor: Tensor) -> str:
    """In the words of `compare` where it is not finite."""
    return not_finite(tensor) or extent(tensor)


def _range(ends: tuple[float, float]) -> str:
    return f"[{figure(ends[0])}, {figure(ends[1])}]"
