"""What diverged first: one verdict of one rank in one step.

The order of the questions: are weights and data the same, is something not finite, are the operators the same, does one
make bad outputs of good inputs, and last whether gradients or the optimizer's step differ where the model does not. Of
several answers about one step, the operator that ran first is the one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from transplt.precision.align import api_of
from transplt.precision.how import how, not_finite
from transplt.precision.match import Match, Matched
from transplt.precision.metrics import Metrics
from transplt.precision.record import FORWARD, MODULE, Tensor

WEIGHTS, DATA, OVERFLOW, STRUCTURE, NUMERIC, DRIFT, GRADIENT, OPTIMIZER = (
    "initial weights differ", "input inconsistent", "overflow", "structure differs", "numeric divergence",
    "errors add up", "gradients differ", "the optimizer's step differs",
)  # fmt: skip
#: Operators that move data and compute nothing: a port may have more or fewer of them.
_MOVES = frozenset(
    "to cuda npu cpu contiguous detach clone pin_memory record_stream type npu_format_cast is_contiguous requires_grad_"
    .split()
)  # fmt: skip
#: An output is bad of its own only if it is that many times worse than the inputs.
_WORSE = 4.0


@dataclass(slots=True)
class Verdict:
    kind: str
    match: Match
    how: str  #: a clause about the outputs of the NPU: `scaled by 1.02`
    name: str  #: of the row, or of the parameter
    position: int  #: which operator of the step; the later ones are consequences
    tensors: tuple[Tensor, Tensor] | None = None


def judge(matched: Matched, metrics: dict[tuple[str, str], Metrics] | None = None) -> Verdict | None:
    """The first divergence of a step; None where the two are the same. `metrics` by the files of both tensors."""
    found = _of_model(matched, metrics or {})
    if found is not None:
        return found
    for kind, matches in ((GRADIENT, matched.gradients), (OPTIMIZER, matched.optimizer)):
        for each in matches:
            position = len(matched.model) + each.position
            if each.one_sided:
                if kind == GRADIENT:
                    return Verdict(STRUCTURE, each, _one_sided(each), each.row.name, position)
            elif each.outputs > 1 and (kind == GRADIENT or each.outputs > _WORSE * each.inputs):
                return Verdict(kind, each, _told(each.worst, metrics or {}), each.row.name, position, each.worst)
    return None


def _of_model(matched: Matched, metrics: dict[tuple[str, str], Metrics]) -> Verdict | None:
    made: set[tuple[object, ...]] = set()
    drift: Match | None = None
    for number, each in enumerate(matched.model):
        row = each.row
        if each.one_sided:
            if row.api.rpartition(".")[2] not in _MOVES:
                other = _other_side(matched.model, number)
                return Verdict(STRUCTURE, each, _one_sided(each, other), row.name, number)
            continue
        assert each.npu is not None and each.bench is not None
        dtypes = _dtypes(each)
        if each.beyond and not each.wrong_input and each.inputs <= 1:
            pair = next(
                (one, other)
                for one, other in zip(each.npu.outputs, each.bench.outputs, strict=False)
                if not_finite(one) and not not_finite(other)
            )
            return Verdict(OVERFLOW, each, not_finite(pair[0]), row.name, number, pair)
        if each.inputs > 1 and row.phase == FORWARD:
            source = each.worst_input
            if source is not None and _print(source[0]) not in made:
                return _other_input(matched, each, source, number, metrics)
        elif each.outputs > 1 and each.outputs > _WORSE * each.inputs:
            argument = _argument(each)
            clause = dtypes or _told(each.worst, metrics)
            return Verdict(NUMERIC, each, clause + argument, row.name, number, each.worst)
        elif dtypes:
            return Verdict(NUMERIC, each, dtypes, row.name, number, each.worst)
        if max(each.inputs, each.outputs) > 1:
            drift = drift or each
        for tensor in each.npu.outputs:
            made.add(_print(tensor))
    if drift is not None:
        return Verdict(DRIFT, drift, _told(drift.worst or drift.worst_input, metrics), drift.row.name, drift.position)
    return None


def _other_input(
    matched: Matched, each: Match, source: tuple[Tensor, Tensor], number: int, metrics: dict[tuple[str, str], Metrics]
) -> Verdict:
    """Something that no operator of the run made: a parameter or data."""
    name = _parameter(matched, source[0])
    kind = WEIGHTS if name else DATA
    clause = _told(source, metrics)
    return Verdict(kind, each, clause, name or f"{each.row.name} {source[0].name}", number, source)


def _parameter(matched: Matched, tensor: Tensor) -> str:
    """The name of the parameter that this tensor is, if it is one."""
    for each in matched.model:
        if each.npu is not None and each.npu.kind == MODULE:
            for parameter in each.npu.parameters:
                if parameter[2:6] == tensor[2:6]:
                    module = api_of(each.npu).rpartition(".")[0].removeprefix("Module.")
                    return f"{module}.{parameter.name.removeprefix('parameters.')}"
    return ""


def _print(tensor: Tensor) -> tuple[object, ...]:
    """By what a tensor is known again when it goes into another operator, as a view of another shape as well."""
    return (tensor.max, tensor.min, tensor.shape if tensor.dtype == "bool" else tensor.size)


def _dtypes(each: Match) -> str:
    """A clause where types of outputs differ, and those of the inputs do not."""
    assert each.npu is not None and each.bench is not None
    for one, other in zip(each.npu.outputs, each.bench.outputs, strict=False):
        if one.is_tensor and other.is_tensor and one.dtype != other.dtype:
            same = [tensor.dtype for tensor in each.npu.inputs] == [tensor.dtype for tensor in each.bench.inputs]
            return f"in {one.dtype} and not in {other.dtype}" if same else ""
    return ""


def _argument(each: Match) -> str:
    """A clause about a number among the arguments that is another one."""
    assert each.npu is not None and each.bench is not None
    there = {tensor.name: tensor for tensor in each.bench.inputs if not tensor.is_tensor}
    for one in each.npu.inputs:
        other = there.get(one.name)
        if one.is_tensor or other is None or (one.max, one.digest) == (other.max, other.digest):
            continue
        values = [str(tensor.digest) if tensor.max is None else f"{tensor.max:.6g}" for tensor in (one, other)]
        if not any(device in value for value in values for device in ("npu", "cuda", "cpu")):
            return f"; its argument {one.name} is {values[0]} and not {values[1]}"
    return ""


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


def told(each: Match, metrics: dict[tuple[str, str], Metrics]) -> str:
    """A clause about the outputs of the NPU where they differ from those of the bench; empty where they agree."""
    if each.one_sided:
        return _one_sided(each)
    return _dtypes(each) or (_told(each.worst, metrics) if each.outputs > 1 else "")


def _told(tensors: tuple[Tensor, Tensor] | None, metrics: dict[tuple[str, str], Metrics]) -> str:
    if tensors is None:
        return "of other values"
    return how(*tensors, metrics.get((tensors[0].path or "", tensors[1].path or "")))
