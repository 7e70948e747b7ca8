"""The operators of two records beside each other, each with how far its inputs and its outputs are apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from transplt.precision.align import api_of, backward_passes, paired, sequences
from transplt.precision.distance import beside, by_figures, overflows, tolerance
from transplt.precision.record import API, BACKWARD, FORWARD, GRADIENT, MODULE, Part, Record, Row, Tensor
from transplt.rules.torch_callables import TENSOR, last_names, names_of

#: What gives memory that nobody has written yet: its values mean nothing.
UNWRITTEN = last_names("unwritten")
#: `torch.mm(a, b, out=c)`: what c held before is overwritten.
_OUT = ["kwargs", "out"]
#: How far two tensors are apart, and the smallest size that counts.
Distance = Callable[[Tensor, Tensor, float], float]


@dataclass(slots=True)
class Match:
    """An operator of both sides, or of one."""

    npu: Row | None
    bench: Row | None
    #: Distances as multiples of the tolerance: beyond 1 they count. Inputs are those of the forward call, too, and the
    #: parameters.
    inputs: float = 0.0
    outputs: float = 0.0
    worst: tuple[Tensor, Tensor] | None = None  #: the outputs that are farthest apart
    worst_input: tuple[Tensor, Tensor] | None = None
    beyond: bool = False  #: the NPU's output overflows or is not finite, and the bench's is
    wrong_input: bool = False  #: so is an input of it
    position: int = 0

    @property
    def row(self) -> Row:
        row = self.npu or self.bench
        assert row is not None
        return row

    @property
    def one_sided(self) -> bool:
        return self.npu is None or self.bench is None


@dataclass(slots=True)
class Matched:
    """Two records of one step and rank."""

    npu: Record
    bench: Record
    model: list[Match]
    optimizer: list[Match]
    gradients: list[Match]
    parts: tuple[Part, Part] | None = None
    stacks: dict[str, tuple[str, ...]] = field(default_factory=dict)


def match(
    npu: Part,
    bench: Part,
    given: float | None = None,
    distance: Distance = by_figures,
    records: list[Record] | None = None,
) -> Matched:
    """The rows of two parts; `records` is given what was read. UnusableDump where one cannot be read."""
    one, other = npu.read(), bench.read()
    if records is not None:
        records += (one, other)
    _same_levels(one, other)
    several = backward_passes(one) > 1 or backward_passes(other) > 1
    left = sequences(one, npu.stacks() if several else None)
    right = sequences(other, bench.stacks() if several else None)
    measured = _Measure(given, distance)
    model = [measured.of(*pair) for pair in paired(left.model, right.model)]
    optimizer = [measured.of(*pair) for pair in paired(left.optimizer, right.optimizer)]
    gradients = [measured.of(*pair) for pair in _by_name(left.gradients, right.gradients)]
    for number, each in enumerate(model):
        each.position = number
    return Matched(one, other, model, optimizer, gradients, (npu, bench))


def _same_levels(one: Record, other: Record) -> None:
    """Where one side recorded operators or modules alone, of the other side no more is compared."""
    for kind in (API, MODULE):
        for record, opposite in ((one, other), (other, one)):
            if any(row.kind == kind for row in record.rows) and not any(row.kind == kind for row in opposite.rows):
                kept = [row for row in record.rows if row.kind != kind]
                record.rows = kept if any(row.kind != GRADIENT for row in kept) else record.rows


def _by_name(npu: Sequence[Row], bench: Sequence[Row]) -> Iterator[tuple[Row | None, Row | None]]:
    sums = _sums(npu, bench) | _sums(bench, npu)
    there = {(api_of(row), row.index): row for row in bench if api_of(row) not in sums}
    for row in npu:
        if api_of(row) not in sums:
            yield row, there.pop((api_of(row), row.index), None)
    for row in there.values():
        yield None, row


def _sums(numbered: Sequence[Row], ends: Sequence[Row]) -> set[str]:
    """Modules of which the one side has the gradients of each backward pass, and the other what they come to at the end
    of the step, as msprobe 8.3 has: its rows have no number."""
    several = {api_of(row) for row in numbered if row.index}
    return several & {api_of(row) for row in ends if row.name.endswith("parameters_grad")}


class _Measure:
    """Measures pairs in their order: what the forward call took in, its backward call takes in as well."""

    def __init__(self, given: float | None, distance: Distance) -> None:
        self._given = given
        self._distance = distance
        self._forward: dict[tuple[str, int], Match] = {}

    def of(self, npu: Row | None, bench: Row | None) -> Match:
        found = Match(npu, bench)
        if npu is None or bench is None:
            return found
        last = npu.api.rpartition(".")[2]
        if npu.kind == API and npu.phase == FORWARD and last in UNWRITTEN:
            return found
        writes = npu.kind == API and npu.phase == FORWARD and last in names_of(TENSOR, "writes")
        taken = npu.inputs[1:] if writes else npu.inputs
        taken = tuple(each for each in taken if each.name.split(".")[:2] != _OUT)
        found.inputs, found.worst_input = self._apart([*pairs(taken, bench.inputs)])
        parameters, worst = self._apart([*pairs(npu.parameters, bench.parameters)])
        if parameters > found.inputs:
            found.inputs, found.worst_input = parameters, worst
        phase = npu.phase if npu.kind != GRADIENT else FORWARD
        outputs = [*pairs(npu.outputs, bench.outputs)]
        found.outputs, found.worst = self._apart(outputs, beside([other for _, other in outputs], phase))
        found.beyond = any(overflows(one) and not overflows(other) for one, other in outputs)
        found.wrong_input = any(overflows(each) for each in (*taken, *npu.parameters))
        call = npu.api, npu.index
        if npu.phase == FORWARD:
            self._forward[call] = found
        elif npu.phase == BACKWARD and (forward := self._forward.get(call)):
            found.wrong_input |= forward.wrong_input or forward.beyond
            apart = max(forward.inputs, forward.outputs)
            if apart > found.inputs:
                found.inputs = apart
                found.worst_input = forward.worst_input if forward.inputs >= forward.outputs else forward.worst
        return found

    def _apart(
        self, both: Sequence[tuple[Tensor, Tensor]], least: float = 0.0
    ) -> tuple[float, tuple[Tensor, Tensor] | None]:
        """The largest distance, as a multiple of the tolerance, and where it is."""
        worst, where = 0.0, None
        for npu, bench in both:
            if npu[3:7] == bench[3:7] and npu.shape == bench.shape and npu.path is None and npu.digest == bench.digest:
                continue
            gap = self._distance(npu, bench, least)
            if gap > 0:
                allowed = tolerance(npu, bench, self._given)
                gap = gap / allowed if allowed else math.inf
                if gap > worst:
                    worst, where = gap, (npu, bench)
        return worst, where


def pairs(npu: Sequence[Tensor], bench: Sequence[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
    """The tensors of one place, by name; numbers among the arguments are no tensors."""
    if [one.name for one in npu] == [other.name for other in bench]:
        for one, same in zip(npu, bench, strict=True):
            if one.is_tensor and same.is_tensor:
                yield one, same
        return
    there = {tensor.name: tensor for tensor in bench}
    for tensor in npu:
        other = there.get(tensor.name)
        if tensor.is_tensor and other is not None and other.is_tensor:
            yield tensor, other
