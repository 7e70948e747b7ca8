"""What diverged first: one verdict of one rank in one step.

The order of the questions: are weights and data the same, is something not finite, are the operators the same, does one
make bad outputs of good inputs, and last whether gradients or the optimizer's step differ where the model does not.
Weights come first wherever they are used; of several other answers about one step, the operator that ran first is the
one.
"""

from __future__ import annotations

from collections.abc import Sequence

from transplt.precision.after_backward import judge_behind, judge_settings
from transplt.precision.dataflow import Wiring
from transplt.precision.difference_kinds import not_finite
from transplt.precision.distance import by_figures, tolerance
from transplt.precision.harmless_operators import harmless, print_of
from transplt.precision.judgement import (
    ARGUMENT,
    CUT,
    DATA,
    DRIFT,
    GRADIENT,
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
from transplt.precision.match import Match, Matched, pairs, taken_in
from transplt.precision.record import BACKWARD, FORWARD, MODULE, Tensor
from transplt.precision.unrecorded_operators import Unrecorded
from transplt.precision.weights import Weights, full_name, moved


def judge(matched: Matched, metrics: AllMetrics | None = None, before: Weights | None = None) -> Judgement | None:
    """The first divergence of a step; None where the two are the same. `metrics` by the files of both tensors, `before`
    what the weights were in the step before."""
    known = metrics or {}
    found = _initial_weights(matched.model, known, before) or _Reading(matched, known).judgement()
    cut = _cut_off(matched.model)
    if cut is not None and found is not None and found.match.row.phase == BACKWARD:
        return cut
    if found is not None:
        # A step ends when optimizers have stepped, so without one of them it goes on: a weight is used again in it, or
        # one side alone has a forward operator behind a backward one.
        forward = found.kind == STRUCTURE and found.match.row.phase == FORWARD
        late = forward and any(each.row.phase == BACKWARD for each in matched.model[: found.position])
        return (judge_settings(matched) if late or found.kind == OPTIMIZER else None) or found
    if (behind := judge_behind(matched, known)) is not None:
        return cut if cut is not None and behind.kind in (GRADIENT, STRUCTURE) else behind
    # An operator that another argument makes no other result with: in this step.
    for each in matched.model:
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


class _Reading:
    """The operators of a step one by one, up to the first that settles what diverged."""

    def __init__(self, matched: Matched, metrics: AllMetrics) -> None:
        self.matched, self.metrics = matched, metrics
        self.wiring = Wiring()
        self.unrecorded = Unrecorded(matched)
        self.spared = harmless(matched.model)
        # What may have diverged first, as is judged by what comes after it: an operator that is apart at all, one whose
        # outputs have no figures that tell, one that is given another tensor; and whether types differ so far.
        self.drift: Match | None = None
        self.blind: Judgement | None = None
        self.wired: Judgement | None = None
        self.typed = False

    def judgement(self) -> Judgement | None:
        """The first divergence of the operators, None where they are the same."""
        model, found = self.matched.model, None
        # What a module takes and gives backward is reported for its operators first, its row may come before theirs.
        late = [each.row.kind == MODULE and each.row.phase == BACKWARD for each in model]
        for each in sorted(model, key=lambda each: (late[each.position], each.position)):
            found = self._one_sided(each) if each.one_sided else self._two_sided(each)
            if found is not None:
                break
            self.wiring.made(each)
        if found is None and (drift := self.drift) is not None:
            clause = how_far(drift.worst or drift.worst_input, self.metrics)
            found = Judgement(DRIFT, drift, clause, drift.row.name, drift.position)
        if self.wired is not None and (found is None or found.kind in (DATA, DRIFT, NUMERIC)):
            found = self.wired
        if found is not None and (cause := self.unrecorded.behind(self.drift or found.match)) is not None:
            found = Judgement(STRUCTURE, cause, one_sided(cause), cause.row.name, cause.position)
        return self.blind if self.blind is not None and found is not None and found.kind != STRUCTURE else found

    def _one_sided(self, each: Match) -> Judgement | None:
        if each.position in self.spared:
            return None
        other = _other_side(self.matched.model, each.position)
        replaced = other is not None and other.position not in self.spared
        if not replaced and self.unrecorded.passes(each):
            return None
        return Judgement(STRUCTURE, each, one_sided(each, other), each.row.name, each.position)

    def _two_sided(self, each: Match) -> Judgement | None:
        npu, bench, row = each.npu, each.bench, each.row
        assert npu is not None and bench is not None
        if each.beyond and not each.wrong_input and each.inputs <= 1:
            both = zip(npu.outputs, bench.outputs, strict=False)
            pair = next((one, other) for one, other in both if not_finite(one) and not not_finite(other))
            return Judgement(OVERFLOW, each, not_finite(pair[0]), row.name, each.position, pair)
        if (found := self._given_another(each) or self._makes_another(each)) is not None:
            return found
        if self.wired is None and row.phase == FORWARD and not self.typed:
            for one, other in pairs(npu.inputs, bench.inputs):
                if one.dtype != other.dtype:
                    clause = f"in {one.dtype} and not in {other.dtype}, and no recorded operator caused this"
                    self.wired = Judgement(WIRING, each, clause, f"{row.name} {one.name}", each.position, (one, other))
                    break
        self.typed = self.typed or any(one.dtype != other.dtype for one, other in pairs(npu.outputs, bench.outputs))
        if max(each.inputs, each.outputs) > 1:
            self.drift = self.drift or each
        return None

    def _given_another(self, each: Match) -> Judgement | None:
        """Something that no operator of the run made (a parameter or data), or what another operator made."""
        source, row = each.worst_input, each.row
        if source is None:
            return None
        given = f"{row.name} {source[0].name}"
        if row.phase == BACKWARD and self.drift is None and each.inputs > WORSE:
            assert each.npu is not None and each.bench is not None
            if source in pairs(each.npu.inputs, each.bench.inputs):  # without what its forward call took in
                clause = f"{how_far(source, self.metrics)}, and every operator before agrees"
                return Judgement(WIRING, each, clause, given, each.position, source)
        if row.phase != FORWARD or each.inputs <= 1:
            return None
        if self.wiring.unknown(source[0]):
            clause = how_far(source, self.metrics)
            name = _parameter(self.matched, source[0])
            if name and _was_same(self.matched.model[: each.position], name):
                clause += f" where it is used again, in {row.name}, and at first it was the same"
                return Judgement(OPTIMIZER, each, clause, name, each.position, source)
            kind = WEIGHTS if name else DATA
            return Judgement(kind, each, clause, name or given, each.position, source, other_argument(each))
        if self.wired is None and (makers := self.wiring.makers(*source)):
            clause = f"{how_far(source, self.metrics)}: {makers[0]} made it, and what the bench takes {makers[1]} made"
            self.wired = Judgement(WIRING, each, clause, given, each.position, source)
            self.wired.of = _passed_to(self.matched, each, source[0])
        return None

    def _makes_another(self, each: Match) -> Judgement | None:
        """A bad output of good inputs."""
        if each.inputs > 1 and each.row.phase == FORWARD:
            return None
        dtypes = _dtypes(each)
        if each.outputs > 1 and each.outputs > WORSE * each.inputs:
            clause, argument = dtypes or how_far(each.worst, self.metrics), other_argument(each)
            found = Judgement(NUMERIC, each, clause + argument, each.row.name, each.position, each.worst)
            found.unsure = "" if dtypes or argument or each.row.phase != FORWARD else _blind_inputs(each)
            return found
        if dtypes:
            return Judgement(NUMERIC, each, dtypes, each.row.name, each.position, each.worst)
        # Of integers and truth the largest and the smallest value are known, by which outputs cannot be judged.
        made = [tensor for tensor in each.npu.outputs if tensor.is_tensor] if each.npu is not None else []
        blind = bool(made) and all(map(_is_blind, made))
        if blind and self.blind is None and each.row.phase == FORWARD and (argument := other_argument(each)):
            clause = f"alike in its figures{argument}"
            self.blind = Judgement(NUMERIC, each, clause, each.row.name, each.position)
        return None


def _is_blind(tensor: Tensor) -> bool:
    """Of integers and truth, dumps of figures have the largest and the smallest value alone."""
    return tensor.mean is None and tensor.path is None and tensor.digest is None


def _blind_inputs(each: Match) -> str:
    """The names of integers that an operator is given, and of which too little is known to call them the same."""
    assert each.npu is not None and each.bench is not None
    given = (one for one, _ in pairs(taken_in(each.npu), each.bench.inputs) if _is_blind(one) and one.size > 1)
    return " and ".join(one.name for one in given if one.max != one.min)


def _cut_off(model: Sequence[Match]) -> Judgement | None:
    """The first operator through which gradients flow on one side alone."""
    for each in model:
        npu, bench = each.npu, each.bench
        if npu is None or bench is None or each.row.phase != FORWARD or npu.kind == MODULE:
            continue
        for one, other in (*pairs(npu.inputs, bench.inputs), *pairs(npu.outputs, bench.outputs)):
            if None not in (one.requires_grad, other.requires_grad) and one.requires_grad != other.requires_grad:
                clause = "no" if other.requires_grad else "on the NPU's side alone a"
                clause += " gradient flows through"
                found = Judgement(CUT, each, clause, f"{each.row.name} {one.name}", each.position, (one, other))
                found.of = _maker(model, one)
                return found
    return None


def _maker(model: Sequence[Match], tensor: Tensor) -> str:
    """The operator that made a tensor, with its gradient; empty where several take it, or a module has handed it on."""
    known = print_of(tensor)
    rows = [each.npu for each in model if each.npu is not None and each.npu.phase == FORWARD]
    takes = [row for row in rows if row.kind != MODULE for one in row.inputs if print_of(one) == known]
    makes = [row for row in rows for one in row.outputs if one.requires_grad and print_of(one) == known]
    return makes[0].name if makes and len(takes) == 1 and all(row.kind != MODULE for row in makes) else ""


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
