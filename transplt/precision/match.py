"""The operators of two records beside each other, each with how far its inputs and its outputs are apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from transplt.precision.align import Sequences, api_of, backward_passes, paired, sequences
from transplt.precision.distance import beside, by_figures, floor, overflows, tolerance
from transplt.precision.record import API, BACKWARD, FORWARD, GRADIENT, MODULE, OPTIMIZER, Part, Record, Row, Tensor
from transplt.rules.torch_callables import TENSOR, last_names, names_of

#: What gives memory that nobody has written yet: its values mean nothing.
UNWRITTEN = last_names("unwritten")
#: They compute the same on any number of leading axes, and kernels for other layouts of memory merge these.
_MERGES_AXES = frozenset({"linear", "matmul", "addmm", "mm", "bmm"})
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
    least: float = 0.0  #: the smallest size that counts, of inputs and outputs
    worst: tuple[Tensor, Tensor] | None = None  #: the outputs that are farthest apart
    worst_input: tuple[Tensor, Tensor] | None = None
    beyond: bool = False  #: the NPU's output overflows or is not finite, and the bench's is
    wrong_input: bool = False  #: so is an input of it
    position: int = 0
    mixed: bool = False  #: two recorders, which name arguments by place and by name

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
    optimizer: list[Match]  #: operators behind the last backward pass
    gradients: list[Match]
    steps: list[Match] = field(default_factory=list)  #: of optimizers, where both sides recorded them
    parts: tuple[Part, Part] | None = None
    measured: Measure | None = None
    _stacks: dict[Part, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)

    def stacks_of(self, part: Part) -> Mapping[str, tuple[str, ...]]:
        """The frames of the rows of a part, read once."""
        if part not in self._stacks:
            self._stacks[part] = part.stacks()
        return self._stacks[part]


def match(
    npu: Part, bench: Part, given: float | None = None, distance: Distance = by_figures,
    records: list[Record] | None = None,
) -> Matched:  # fmt: skip
    """The rows of two parts; `records` is given what was read. UnusableDump where one cannot be read."""
    one, other = npu.read(), bench.read()
    if records is not None:
        records += (one, other)
    _same_levels(one, other)
    several = backward_passes(one) > 1 or backward_passes(other) > 1
    mixed = one.recorder != other.recorder
    if mixed:
        _same_backward(one, other)
    left = sequences(one, npu.stacks() if several else None)
    right = sequences(other, bench.stacks() if several else None)
    if mixed:
        _same_steps(left, right)
    of_bench = [each for row in right.gradients for each in row.outputs]
    of_bench += [each for row in right.steps for each in row.inputs if each.name.startswith("gradient.")]
    measured = Measure(given, distance, floor(of_bench))
    model = [measured.of(*pair) for pair in paired(left.model, right.model)]
    gradients = [measured.of(*pair) for pair in _by_name(left.gradients, right.gradients)]
    recorded = bool(left.steps and right.steps)
    # Where the steps of optimizers are known, what is computed of gradients before counts as these do.
    optimizer = [measured.of(*pair, floored=recorded) for pair in paired(left.optimizer, right.optimizer)]
    alike = len(left.steps) == len(right.steps)  # one in place of another is of another class
    ordered = zip(left.steps, right.steps, strict=True) if alike else paired(left.steps, right.steps)
    steps = [measured.of(*pair) for pair in ordered] if recorded else []
    for number, each in enumerate((*model, *gradients, *optimizer, *steps)):
        each.position, each.mixed = number, mixed
    return Matched(one, other, model, optimizer, gradients, steps, (npu, bench), measured)


def _same_levels(one: Record, other: Record) -> None:
    """Where one side recorded operators or modules alone, of the other side no more is compared."""
    for kind in (API, MODULE):
        for record, opposite in ((one, other), (other, one)):
            if any(row.kind == kind for row in record.rows) and not any(row.kind == kind for row in opposite.rows):
                kept = [row for row in record.rows if row.kind != kind]
                record.rows = kept if any(row.kind != GRADIENT for row in kept) else record.rows


def _same_backward(one: Record, other: Record) -> None:
    """msprobe has the last node of an operator's backward pass, `transplt run --dump` all of it: of two recorders those
    backward rows are compared that both have of modules, which begin and end in another order."""

    def calls(record: Record) -> dict[tuple[str, int], int]:
        backward = ((row, at) for at, row in enumerate(record.rows) if (row.kind, row.phase) == (MODULE, BACKWARD))
        return {(api_of(row), row.index): at for row, at in backward}

    if not (both := calls(one).keys() & calls(other).keys()):
        return
    for record in (one, other):
        record.rows = [row for row in record.rows if row.phase != BACKWARD or row.kind in (GRADIENT, OPTIMIZER)
                       or (row.kind == MODULE and (api_of(row), row.index) in both)]  # fmt: skip
    order, places = calls(one), calls(other)
    modules = [other.rows[places[call]] for call in sorted(both, key=order.__getitem__)]
    for at, row in zip(sorted(places.values()), modules, strict=True):
        other.rows[at] = row


def _same_steps(left: Sequences, right: Sequences) -> None:
    """Of two recorders, what optimizers call has other names; gradients are those before or after the ranks' sum."""
    left.optimizer = right.optimizer = []
    if (left.steps and right.steps) or any(api_of(row) != row.api for row in (*left.gradients, *right.gradients)):
        left.gradients = right.gradients = []


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


class Measure:
    """Measures pairs in their order: what the forward call took in, its backward call takes in as well.

    `floor` is the smallest size of a gradient of parameters that counts."""

    def __init__(self, given: float | None, distance: Distance = by_figures, least: float = 0.0) -> None:
        self._given = given
        self._distance = distance
        self._floor = least
        self._forward: dict[tuple[str, int], Match] = {}

    def of(self, npu: Row | None, bench: Row | None, *, floored: bool = False) -> Match:
        """How far the rows are apart. `floored`: what is smaller than gradients that count is nothing but rounding."""
        found = Match(npu, bench, least=self._floor if floored else 0.0)
        if npu is None or bench is None:
            return found
        if npu.kind == OPTIMIZER or is_unwritten(npu):
            return found  # what an optimizer does is judged by how far it moves weights
        taken = taken_in(npu)
        found.inputs, found.worst_input = self._apart(_of_one_shape(npu, pairs(taken, bench.inputs)), found.least)
        parameters, worst = self._apart([*pairs(npu.parameters, bench.parameters)])
        if parameters > found.inputs:
            found.inputs, found.worst_input = parameters, worst
        outputs = _of_one_shape(npu, pairs(npu.outputs, bench.outputs))
        found.outputs, found.worst = self._apart(outputs, max(found.least, self.least(bench)))
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

    def least(self, bench: Row) -> float:
        """The smallest size of an output of a row that counts."""
        return max(beside(bench.outputs, bench.phase), self._floor if bench.kind == GRADIENT else 0.0)

    def _apart(
        self, both: Sequence[tuple[Tensor, Tensor]], least: float = 0.0
    ) -> tuple[float, tuple[Tensor, Tensor] | None]:
        """The largest distance, as a multiple of the tolerance, and where it is."""
        worst, where = 0.0, None
        for npu, bench in both:
            if npu[3:7] == bench[3:7] and npu.shape == bench.shape and npu.path is None and npu.digest == bench.digest:
                continue
            gap = self.times(npu, bench, least)
            if gap > worst:
                worst, where = gap, (npu, bench)
        return worst, where

    def times(self, npu: Tensor, bench: Tensor, least: float = 0.0) -> float:
        """The distance of two tensors as a multiple of the tolerance."""
        gap = self._distance(npu, bench, least)
        allowed = tolerance(npu, bench, self._given)
        return gap / allowed if allowed else math.inf if gap > 0 else 0.0


def _of_one_shape(row: Row, both: Iterator[tuple[Tensor, Tensor]]) -> list[tuple[Tensor, Tensor]]:
    """The pairs of tensors of a row; those of a product are the same with other leading axes."""
    if row.api.rpartition(".")[2] not in _MERGES_AXES:
        return [*both]
    return [(one._replace(shape=other.shape) if one.size == other.size else one, other) for one, other in both]


def is_unwritten(row: Row) -> bool:
    """Whether a row gives memory that nobody has written."""
    return row.kind == API and row.phase == FORWARD and row.api.rpartition(".")[2] in UNWRITTEN


def taken_in(row: Row) -> tuple[Tensor, ...]:
    """The inputs whose values count: not what the operator writes over."""
    writes = row.kind == API and row.phase == FORWARD and row.api.rpartition(".")[2] in names_of(TENSOR, "writes")
    taken = row.inputs[1:] if writes else row.inputs
    return tuple(each for each in taken if each.name.split(".")[:2] != _OUT)


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
