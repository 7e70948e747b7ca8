"""What diverged first: one verdict of one rank in one step.

The order of the questions: are weights and data the same, is something not finite, are the operators the same, does one
make bad outputs of good inputs, and last whether gradients or the optimizer's step differ where the model does not.
Weights come first wherever they are used; of several other answers about one step, the operator that ran first is the
one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from transplt.precision.align import api_of
from transplt.precision.distance import by_figures, tolerance
from transplt.precision.harmless import harmless
from transplt.precision.how import how, not_finite
from transplt.precision.match import Match, Matched, pairs
from transplt.precision.metrics import Metrics
from transplt.precision.record import BACKWARD, FORWARD, MODULE, Row, Tensor
from transplt.precision.unrecorded import Unrecorded
from transplt.precision.wiring import Wiring

WEIGHTS, DATA, OVERFLOW, STRUCTURE, NUMERIC, WIRING, DRIFT, GRADIENT, OPTIMIZER = (
    "initial weights differ", "input inconsistent", "overflow", "structure differs", "numeric divergence",
    "other input", "errors add up", "gradients differ", "the optimizer's step differs",
)  # fmt: skip
#: An output is bad of its own only if it is that many times worse than the inputs.
_WORSE = 4.0


@dataclass(slots=True)
class Judgement:
    kind: str
    match: Match
    how: str  #: a clause about the outputs of the NPU: `scaled by 1.02`
    name: str  #: of the row, or of the parameter
    position: int  #: which operator of the step; the later ones are consequences
    tensors: tuple[Tensor, Tensor] | None = None
    more: str = ""  #: a clause about the arguments


def judge(matched: Matched, metrics: dict[tuple[str, str], Metrics] | None = None) -> Judgement | None:
    """The first divergence of a step; None where the two are the same. `metrics` by the files of both tensors."""
    found = _initial_weights(matched.model, metrics or {}) or _of_model(matched, metrics or {})
    if found is not None:
        return found
    for kind, matches in ((GRADIENT, matched.gradients), (OPTIMIZER, matched.optimizer)):
        for each in matches:
            position = len(matched.model) + each.position
            if each.one_sided:
                if kind == GRADIENT:
                    return Judgement(STRUCTURE, each, _one_sided(each), each.row.name, position)
            elif each.outputs > 1 and (kind == GRADIENT or each.outputs > _WORSE * each.inputs):
                return Judgement(kind, each, _how_far(each.worst, metrics or {}), each.row.name, position, each.worst)
    return None


def _initial_weights(model: Sequence[Match], metrics: dict[tuple[str, str], Metrics]) -> Judgement | None:
    """A parameter that differs before anything was learnt in this step: nothing that ran earlier is its cause."""
    for number, each in enumerate(model):
        if each.row.phase == BACKWARD:
            break
        if each.npu is not None and each.bench is not None and each.npu.kind == MODULE:
            for one, other in pairs(each.npu.parameters, each.bench.parameters):
                if by_figures(one, other) > tolerance(one, other, None):
                    name = _full_name(each.npu, one)
                    return Judgement(WEIGHTS, each, _how_far((one, other), metrics), name, number, (one, other))
    return None


def _of_model(matched: Matched, metrics: dict[tuple[str, str], Metrics]) -> Judgement | None:
    wiring = Wiring()
    unrecorded = Unrecorded(matched)
    spared = harmless(matched.model)
    drift: Match | None = None
    blind: Judgement | None = None
    wired: Judgement | None = None
    found: Judgement | None = None
    typed = False
    # What a module takes and gives backward is reported for its operators first, and its row may come before theirs.
    late = [each.row.kind == MODULE and each.row.phase == BACKWARD for each in matched.model]
    for number in sorted(range(len(matched.model)), key=lambda number: (late[number], number)):
        each = matched.model[number]
        row = each.row
        if each.one_sided:
            if number not in spared:
                other = _other_side(matched.model, number)
                replaced = other is not None and other.position not in spared
                if replaced or not unrecorded.passes(each):
                    found = Judgement(STRUCTURE, each, _one_sided(each, other), row.name, number)
                    break
            wiring.made(each)
            continue
        assert each.npu is not None and each.bench is not None
        dtypes = _dtypes(each)
        if each.beyond and not each.wrong_input and each.inputs <= 1:
            pair = next(
                (one, other)
                for one, other in zip(each.npu.outputs, each.bench.outputs, strict=False)
                if not_finite(one) and not not_finite(other)
            )
            found = Judgement(OVERFLOW, each, not_finite(pair[0]), row.name, number, pair)
            break
        if each.inputs > 1 and row.phase == FORWARD:
            source = each.worst_input
            if source is not None and wiring.unknown(source[0]):
                found = _other_input(matched, each, source, number, metrics)
                break
            if source is not None and wired is None and (makers := wiring.makers(*source)):
                clause = f"{_how_far(source, metrics)}: {makers[0]} made it, and what the bench takes {makers[1]} made"
                wired = Judgement(WIRING, each, clause, f"{row.name} {source[0].name}", number, source)
        elif row.phase == BACKWARD and drift is None and each.inputs > _WORSE and each.worst_input in _gradients(each):
            assert each.worst_input is not None
            clause = f"{_how_far(each.worst_input, metrics)}, and every operator before agrees"
            name = f"{row.name} {each.worst_input[0].name}"
            found = Judgement(WIRING, each, clause, name, number, each.worst_input)
            break
        elif each.outputs > 1 and each.outputs > _WORSE * each.inputs:
            clause = dtypes or _how_far(each.worst, metrics)
            found = Judgement(NUMERIC, each, clause + other_argument(each), row.name, number, each.worst)
            break
        elif dtypes:
            found = Judgement(NUMERIC, each, dtypes, row.name, number, each.worst)
            break
        elif blind is None and row.phase == FORWARD and _is_blind(each) and (argument := other_argument(each)):
            blind = Judgement(NUMERIC, each, f"alike in its figures{argument}", row.name, number)
        if wired is None and row.phase == FORWARD and (cast := _other_type(each)) is not None and not typed:
            clause = f"in {cast[0].dtype} and not in {cast[1].dtype}, and no recorded operator made it so"
            wired = Judgement(WIRING, each, clause, f"{row.name} {cast[0].name}", number, cast)
        typed = typed or any(one.dtype != other.dtype for one, other in pairs(each.npu.outputs, each.bench.outputs))
        if max(each.inputs, each.outputs) > 1:
            drift = drift or each
        wiring.made(each)
    if found is None and drift is not None:
        how_far = _how_far(drift.worst or drift.worst_input, metrics)
        found = Judgement(DRIFT, drift, how_far, drift.row.name, drift.position)
    if wired is not None and (found is None or found.kind in (DATA, DRIFT, NUMERIC)):
        found = wired
    if found is not None and (cause := unrecorded.behind(drift or found.match)) is not None:
        found = Judgement(STRUCTURE, cause, _one_sided(cause), cause.row.name, cause.position)
    return blind if blind is not None and found is not None and found.kind != STRUCTURE else found


def _gradients(each: Match) -> list[tuple[Tensor, Tensor]]:
    """What came into a backward operator, without what its forward call took in."""
    assert each.npu is not None and each.bench is not None
    return [*pairs(each.npu.inputs, each.bench.inputs)]


def _other_type(each: Match) -> tuple[Tensor, Tensor] | None:
    """An input that is of another type."""
    assert each.npu is not None and each.bench is not None
    both = pairs(each.npu.inputs, each.bench.inputs)
    return next(((one, other) for one, other in both if one.dtype != other.dtype), None)


def _is_blind(each: Match) -> bool:
    """Whether the outputs cannot be judged: integers and truth by their largest and smallest value."""
    assert each.npu is not None
    made = [tensor for tensor in each.npu.outputs if tensor.is_tensor]
    return bool(made) and all(t.mean is None and t.path is None and t.digest is None for t in made)


def _other_input(
    matched: Matched, each: Match, source: tuple[Tensor, Tensor], number: int, metrics: dict[tuple[str, str], Metrics]
) -> Judgement:
    """Something that no operator of the run made: a parameter or data."""
    name = _parameter(matched, source[0])
    clause = _how_far(source, metrics)
    if name and _was_same(matched.model[:number], name):
        clause += f" where it is used again, in {each.row.name}, and at first it was the same"
        return Judgement(OPTIMIZER, each, clause, name, number, source)
    kind = WEIGHTS if name else DATA
    name = name or f"{each.row.name} {source[0].name}"
    return Judgement(kind, each, clause, name, number, source, other_argument(each))


def _parameter(matched: Matched, tensor: Tensor) -> str:
    """The name of the parameter that this tensor is, if it is one."""
    for each in matched.model:
        if each.npu is not None and each.npu.kind == MODULE:
            for parameter in each.npu.parameters:
                if parameter[2:6] == tensor[2:6]:
                    return _full_name(each.npu, parameter)
    return ""


def _full_name(module: Row, parameter: Tensor) -> str:
    name = api_of(module).rpartition(".")[0].removeprefix("Module.")
    return f"{name}.{parameter.name.removeprefix('parameters.')}"


def _was_same(before: Sequence[Match], name: str) -> bool:
    """Whether a module that ran before had the parameter with the same figures on both sides."""
    return any(
        _full_name(each.npu, one) == name and by_figures(one, other) <= tolerance(one, other, None)
        for each in before
        if each.npu is not None and each.bench is not None and each.npu.kind == MODULE
        for one, other in pairs(each.npu.parameters, each.bench.parameters)
    )


def _dtypes(each: Match) -> str:
    """A clause where types of outputs differ, and those of the inputs do not."""
    assert each.npu is not None and each.bench is not None
    for one, other in zip(each.npu.outputs, each.bench.outputs, strict=False):
        if one.is_tensor and other.is_tensor and one.dtype != other.dtype:
            same = [tensor.dtype for tensor in each.npu.inputs] == [tensor.dtype for tensor in each.bench.inputs]
            return f"in {one.dtype} and not in {other.dtype}" if same else ""
    return ""


def other_argument(each: Match) -> str:
    """A clause about a number among the arguments that is another one, or that one side alone gives."""
    assert each.npu is not None and each.bench is not None
    ours, theirs = (
        {tensor.name: _value(tensor) for tensor in row.inputs if not tensor.is_tensor} for row in (each.npu, each.bench)
    )
    tensors = {tensor.name for row in (each.npu, each.bench) for tensor in row.inputs if tensor.is_tensor}
    for name in dict.fromkeys((*ours, *theirs)):
        one, other = ours.get(name), theirs.get(name)
        if one == other or name in tensors or any(device in f"{one} {other}" for device in ("npu", "cuda", "cpu")):
            continue
        if one is None or other is None:
            # What is given by its place on one side may be given by its name on the other.
            if name.startswith("kwargs.") and "None" not in (one, other):
                return f"; its argument {name} is {one or 'not given'} and not {other or 'given'}"
            continue
        return f"; its argument {name} is {one} and not {other}"
    return ""


def _value(tensor: Tensor) -> str:
    return str(tensor.digest) if tensor.max is None else f"{tensor.max:.6g}"


def _one_sided(each: Match, other: Match | None = None) -> str:
    if other is not None:
        npu, bench = (each, other) if each.npu is not None else (other, each)
        return f"in place of {bench.row.name}" if npu is each else f"has {npu.row.name} in its place"
    return "only on the NPU's side" if each.bench is None else "missing on the NPU's side"


def _other_side(model: Sequence[Match], number: int) -> Match | None:
    """What stands in the place of an operator that one side has alone, in the same gap."""
    each = model[number]
    for other in model[number + 1 :]:
        if not other.one_sided:
            return None
        if (other.npu is None) != (each.npu is None):
            return other if other.row.phase == each.row.phase else None
    return None


def output_difference(each: Match, metrics: dict[tuple[str, str], Metrics]) -> str:
    """A clause about the outputs of the NPU where they differ from those of the bench; empty where they agree."""
    if each.one_sided:
        return _one_sided(each)
    return _dtypes(each) or (_how_far(each.worst, metrics) if each.outputs > 1 else "")


def _how_far(tensors: tuple[Tensor, Tensor] | None, metrics: dict[tuple[str, str], Metrics]) -> str:
    if tensors is None:
        return "of other values"
    return how(*tensors, metrics.get((tensors[0].path or "", tensors[1].path or "")))
