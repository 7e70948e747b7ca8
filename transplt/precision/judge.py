"""What diverged first: one verdict of one rank in one step.

The order of the questions: are weights and data the same, is something not finite, are the operators the same, does one
make bad outputs of good inputs, and last whether gradients or the optimizer's step differ where the model does not.
Weights come first wherever they are used; of several other answers about one step, the operator that ran first is the
one.
"""

from __future__ import annotations

from collections.abc import Sequence

from transplt.precision.behind import judge_behind, judge_settings
from transplt.precision.distance import by_figures, tolerance
from transplt.precision.harmless import harmless, print_of
from transplt.precision.how import not_finite
from transplt.precision.judgement import (
    ARGUMENT,
    DATA,
    DRIFT,
    NUMERIC,
    OPTIMIZER,
    OVERFLOW,
    STRUCTURE,
    WEIGHTS,
    WIRING,
    WORSE,
    AllMetrics,
    Judgement,
    how_far,
    one_sided,
    other_argument,
    telling_argument,
)
from transplt.precision.match import Match, Matched, pairs
from transplt.precision.record import BACKWARD, FORWARD, MODULE, Tensor
from transplt.precision.unrecorded import Unrecorded
from transplt.precision.weights import Weights, full_name, moved
from transplt.precision.wiring import Wiring


def judge(matched: Matched, metrics: AllMetrics | None = None, before: Weights | None = None) -> Judgement | None:
    """The first divergence of a step; None where the two are the same. `metrics` by the files of both tensors, `before`
    what the weights were in the step before."""
    known = metrics or {}
    found = _initial_weights(matched.model, known, before) or _of_model(matched, known)
    # A weight that is used again in the step, and what only one side does behind the first backward pass in it.
    if found is not None and (found.kind == OPTIMIZER or _is_late(matched, found)):
        return judge_settings(matched) or found
    return found or judge_behind(matched, known) or _argument(matched.model)


def _is_late(matched: Matched, found: Judgement) -> bool:
    """Whether a forward operator of one side alone ran behind a backward one: a step ends when optimizers have stepped,
    so without one of them it goes on."""
    before = matched.model[: found.position]
    forward = found.kind == STRUCTURE and found.match.row.phase == FORWARD
    return forward and any(each.row.phase == BACKWARD for each in before)


def _argument(model: Sequence[Match]) -> Judgement | None:
    """An operator that another argument makes no other result with: in this step."""
    for each in model:
        if not each.one_sided and each.row.phase == FORWARD and (clause := telling_argument(each)):
            return Judgement(ARGUMENT, each, clause, each.row.name, each.position)
    return None


def _initial_weights(model: Sequence[Match], metrics: AllMetrics, before: Weights | None) -> Judgement | None:
    """A parameter that differs before anything was learnt in this step: nothing that ran earlier is its cause."""
    last = before.by_name if before is not None else {}
    spared = before.noise if before is not None else ()
    for number, each in enumerate(model):
        if each.row.phase == BACKWARD:
            break
        if each.npu is not None and each.bench is not None and each.npu.kind == MODULE:
            for one, other in pairs(each.npu.parameters, each.bench.parameters):
                name = full_name(each.npu, one)
                if name in spared:
                    continue
                clause = moved(last[name], (one, other)) if name in last else ""
                if clause or by_figures(one, other) > tolerance(one, other, None):
                    clause = clause or how_far((one, other), metrics)
                    return Judgement(WEIGHTS, each, clause, name, number, (one, other))
    return None


def _of_model(matched: Matched, metrics: AllMetrics) -> Judgement | None:
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
                    found = Judgement(STRUCTURE, each, one_sided(each, other), row.name, number)
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
                clause = f"{how_far(source, metrics)}: {makers[0]} made it, and what the bench takes {makers[1]} made"
                wired = Judgement(WIRING, each, clause, f"{row.name} {source[0].name}", number, source)
                wired.of = _passed_to(matched, each, source[0])
        elif row.phase == BACKWARD and drift is None and each.inputs > WORSE and each.worst_input in _gradients(each):
            assert each.worst_input is not None
            clause = f"{how_far(each.worst_input, metrics)}, and every operator before agrees"
            name = f"{row.name} {each.worst_input[0].name}"
            found = Judgement(WIRING, each, clause, name, number, each.worst_input)
            break
        elif each.outputs > 1 and each.outputs > WORSE * each.inputs:
            clause = dtypes or how_far(each.worst, metrics)
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
        clause = how_far(drift.worst or drift.worst_input, metrics)
        found = Judgement(DRIFT, drift, clause, drift.row.name, drift.position)
    if wired is not None and (found is None or found.kind in (DATA, DRIFT, NUMERIC)):
        found = wired
    if found is not None and (cause := unrecorded.behind(drift or found.match)) is not None:
        found = Judgement(STRUCTURE, cause, one_sided(cause), cause.row.name, cause.position)
    return blind if blind is not None and found is not None and found.kind != STRUCTURE else found


def _passed_to(matched: Matched, each: Match, tensor: Tensor) -> str:
    """The outermost call of a module that hands a tensor on to an operator in it: there it was mixed up."""
    record = matched.npu
    rows = {row.name: row for row in record.rows if row.kind == MODULE}
    assert each.npu is not None
    name, found = record.parents.get(each.npu.name, ""), ""
    while name in rows and name != found:
        if not any(print_of(given) == print_of(tensor) for given in rows[name].inputs):
            break
        name, found = record.parents.get(name, ""), name
    return found


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
    matched: Matched, each: Match, source: tuple[Tensor, Tensor], number: int, metrics: AllMetrics
) -> Judgement:
    """Something that no operator of the run made: a parameter or data."""
    name = _parameter(matched, source[0])
    clause = how_far(source, metrics)
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
                    return full_name(each.npu, parameter)
    return ""


def _was_same(before: Sequence[Match], name: str) -> bool:
    """Whether a module that ran before had the parameter with the same figures on both sides."""
    return any(
        full_name(each.npu, one) == name and by_figures(one, other) <= tolerance(one, other, None)
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


def _other_side(model: Sequence[Match], number: int) -> Match | None:
    """What stands in the place of an operator that one side has alone, in the same gap."""
    each = model[number]
    for other in model[number + 1 :]:
        if not other.one_sided:
            return None
        if (other.npu is None) != (each.npu is None):
            return other if other.row.phase == each.row.phase else None
    return None


def output_difference(each: Match, metrics: AllMetrics) -> str:
    """A clause about the outputs of the NPU where they differ from those of the bench; empty where they agree."""
    if each.one_sided:
        return one_sided(each)
    return _dtypes(each) or (how_far(each.worst, metrics) if each.outputs > 1 else "")
