"""The steps of optimizers that both sides recorded: class, settings by name, gradients, states, moves of weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from transplt.precision.difference_kinds import how
from transplt.precision.distance import by_figures, floor, largest, overflows, tolerance
from transplt.precision.judgement import GRADIENT, OPTIMIZER, STRUCTURE, Judgement, class_of, one_sided, value_of
from transplt.precision.match import Match, Matched, pairs
from transplt.precision.optimizer_file import MADE
from transplt.precision.record import Row, Tensor
from transplt.precision.weights import moved

#: How it is computed, and not what.
_HOW_COMPUTED = frozenset({"foreach", "fused", "capturable", "differentiable", "initial_lr", "swap_ratio"})
#: Two that are the same number up to this share were computed by a schedule in another order.
_SAME_NUMBER = 1e-6
#: States are sums of what gradients are, and of their squares.
_OF_STATES = 10.0
_MOST_SETTINGS = 3
_OF_PARAMETERS = ("gradient", "state", "parameters", "output", "left")


@dataclass(slots=True)
class Step:
    """The step of one optimizer on both sides, or on one."""

    match: Match
    least: float  #: the smallest size of a gradient that counts

    def gradients(self) -> Judgement | None:
        """Whether it takes other gradients."""
        npu, bench = self.match.npu, self.match.bench
        if npu is None or bench is None:
            return None
        there = {tensor.name for tensor in bench.inputs}
        for one in npu.inputs:
            if _is_a(one, "gradient") and one.name not in there:
                return self._judged(GRADIENT, f"given a gradient of {_param(one)}, and the bench's is given none")
        worst = max(self._apart(npu.inputs, bench.inputs, "gradient"), default=None, key=lambda found: found[0])
        if worst is None:
            ours = {tensor.name for tensor in npu.inputs}
            lacking = next((each for each in bench.inputs if _is_a(each, "gradient") and each.name not in ours), None)
            return lacking and self._judged(GRADIENT, f"given no gradient of {_param(lacking)}, and the bench's is")
        one, other = worst[1]
        return self._judged(GRADIENT, f"given gradients that are {how(one, other)} ({_param(one)})", (one, other))

    def settings(self) -> Judgement | None:
        """Whether it is another one, or has other settings."""
        npu, bench = self.match.npu, self.match.bench
        if npu is None or bench is None:
            return self._judged(STRUCTURE, one_sided(self.match))
        if class_of(npu) != class_of(bench):
            return self._judged(OPTIMIZER, f"one of {class_of(npu)} and not of {class_of(bench)}", made=True)
        if other := _settings(npu, bench):
            made = _settings(npu, bench, "made.")
            return self._judged(OPTIMIZER, f"taken with other settings: {other}", made=bool(made))
        return None

    def own(self) -> Judgement | None:
        """Whether it has other settings or states, or moves weights otherwise."""
        if (found := self.settings()) is not None:
            return found
        npu, bench = self.match.npu, self.match.bench
        assert npu is not None and bench is not None
        noise = {_param(one) for one, other in pairs(npu.inputs, bench.inputs)
                 if _is_a(one, "gradient") and by_figures(one, other) > tolerance(one, other, None)}  # fmt: skip
        if (lacking := self._lacking()) is not None:
            return lacking
        for gap, (one, other) in self._apart(npu.inputs, bench.inputs, "state", _OF_STATES):
            if gap > 1 and not any(_param(one).startswith(f"{name}.") for name in noise):
                clause = f"taken with a state that is {how(one, other)} ({_param(one)})"
                return self._judged(OPTIMIZER, clause, (one, other))
        outputs = ((one, other) for one, other in pairs(npu.outputs, bench.outputs) if _is_a(one, "output"))
        for before, after in zip(pairs(npu.parameters, bench.parameters), outputs, strict=False):
            wrong = overflows(after[0]) and not overflows(after[1]) and not overflows(before[0])
            if _param(after[0]) not in noise and (clause := moved(before, after) or ("not finite" if wrong else "")):
                return self._judged(OPTIMIZER, f"given the same and has {_param(after[0])} {clause}", after)
        return None

    def _lacking(self) -> Judgement | None:
        """Whether one side lacks a state that is more than zeros."""
        npu, bench = self.match.npu, self.match.bench
        assert npu is not None and bench is not None
        ours, theirs = ({each.name: each for each in row.inputs if _is_a(each, "state")} for row in (npu, bench))
        for name, each in (theirs | ours).items():
            if (name in ours) != (name in theirs) and largest(each):
                clause = f"taken without the state {_param(each)}: lost, or not loaded"
                if name in ours:
                    clause = f"taken with a state {_param(each)}, which the bench's does not have"
                return self._judged(OPTIMIZER, clause, (each, each))
        return None

    def left(self) -> Judgement | None:
        """Whether weights are changed behind it, on one side or to other values."""
        npu, bench = self.match.npu, self.match.bench
        if npu is None or bench is None:
            return None
        ours, theirs = ({each.name: each for each in row.outputs if _is_a(each, "left")} for row in (npu, bench))
        for name in (*ours, *theirs):
            if name not in ours or name not in theirs:
                side = "the NPU's" if name in ours else "the bench's"
                return self._judged(OPTIMIZER, f"followed by a change of {name.partition('.')[2]} on {side} side alone")
            if by_figures(ours[name], theirs[name]) > tolerance(ours[name], theirs[name], None):
                clause = f"followed by a change of {_param(ours[name])}, which is then {how(ours[name], theirs[name])}"
                return self._judged(OPTIMIZER, clause, (ours[name], theirs[name]))
        return None

    def _apart(
        self, npu: tuple[Tensor, ...], bench: tuple[Tensor, ...], kind: str, times: float = 1.0
    ) -> Iterator[tuple[float, tuple[Tensor, Tensor]]]:
        """Pairs of tensors of a kind beyond the tolerance, with how far."""
        least = self.least if kind == "gradient" else 0.0
        for one, other in pairs(npu, bench):
            if _is_a(one, kind):
                gap = by_figures(one, other, least)
                allowed = times * tolerance(one, other, None)
                if gap > allowed:
                    yield gap / allowed if allowed else gap, (one, other)

    def _judged(
        self, kind: str, clause: str, tensors: tuple[Tensor, Tensor] | None = None, *, made: bool = False
    ) -> Judgement:
        row = self.match.row
        name = row.name.removesuffix(".forward")
        return Judgement(kind, self.match, clause, name, self.match.position, tensors, of=row.name + MADE * made)


def steps_of(matched: Matched) -> Iterator[Step]:
    """Those of a step, in order."""
    taken = [each for match in matched.steps if match.bench is not None for each in match.bench.inputs]
    least = floor(each for each in taken if _is_a(each, "gradient"))
    for each in matched.steps:
        yield Step(_named_alike(each), least)


def _named_alike(match: Match) -> Match:
    """A step whose parameters have the same names on both sides: where a recorder did not know the network they have
    numbers, and are the same in their order."""
    npu, bench = match.npu, match.bench
    if npu is None or bench is None:
        return match
    ours, theirs = ([_param(each) for each in row.parameters] for row in (npu, bench))
    shapes = [[each.shape for each in row.parameters] for row in (npu, bench)]
    if {*ours} == {*theirs} or len(ours) != len(theirs) or shapes[0] != shapes[1]:
        return match
    names = dict(zip(theirs, ours, strict=True))

    def renamed(tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return tuple(each._replace(name=_renamed(each.name, names)) for each in tensors)

    row = replace(bench, inputs=renamed(bench.inputs), outputs=renamed(bench.outputs),
                  parameters=renamed(bench.parameters))  # fmt: skip
    return replace(match, bench=row)


def _renamed(name: str, names: dict[str, str]) -> str:
    kind, _, own = name.partition(".")
    if kind not in _OF_PARAMETERS:
        return name
    state = own.rpartition(".") if kind == "state" else (own, "", "")
    new = names.get(state[0])
    return name if new is None else f"{kind}.{new}{state[1]}{state[2]}"


def _is_a(tensor: Tensor, kind: str) -> bool:
    return tensor.is_tensor and tensor.name.startswith(f"{kind}.")


def _param(tensor: Tensor) -> str:
    """The name of the parameter (and state) of a tensor of a row."""
    return tensor.name.partition(".")[2]


def _settings(npu: Row, bench: Row, prefix: str = "") -> str:
    """`lr is 0.001 and not 0.002`, of the settings that both have; those of `made.` are the ones it began with."""
    told = ([each for each in row.inputs if not each.is_tensor and each.name.startswith("made.") == bool(prefix)]
            for row in (npu, bench))  # fmt: skip
    ours, theirs = ({each.name.removeprefix(prefix): each for each in side} for side in told)
    found = [
        f"{name} is {value_of(one)} and not {value_of(theirs[name])}"
        for name, one in ours.items()
        if name in theirs and name.rpartition(".")[2] not in _HOW_COMPUTED and not _same(one, theirs[name])
    ]
    return ", ".join(found[:_MOST_SETTINGS])


def _same(one: Tensor, other: Tensor) -> bool:
    if one.max is None or other.max is None:
        return value_of(one) == value_of(other)
    return abs(one.max - other.max) <= _SAME_NUMBER * max(abs(one.max), abs(other.max))
