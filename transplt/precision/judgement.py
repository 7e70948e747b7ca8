"""What a verdict is: its kind, the operator that it names, and in which way the NPU's side differs there."""

from __future__ import annotations

from dataclasses import dataclass

from transplt.precision.difference_kinds import how
from transplt.precision.match import Match
from transplt.precision.metrics import Measured
from transplt.precision.record import OPTIMIZER as OPTIMIZER_ROW
from transplt.precision.record import Row, Tensor

WEIGHTS, DATA, OVERFLOW, STRUCTURE, NUMERIC, WIRING, DRIFT, GRADIENT, OPTIMIZER, ARGUMENT, CUT = (
    "initial weights differ", "input inconsistent", "overflow", "structure differs", "numeric divergence",
    "other input", "errors add up", "gradients differ", "the optimizer's step differs", "other argument",
    "gradient cut off",
)  # fmt: skip
#: An output is bad of its own only if it is that many times worse than the inputs.
WORSE = 4.0
AllMetrics = dict[tuple[str, str], Measured]


@dataclass(slots=True)
class Judgement:
    kind: str
    match: Match
    how: str  #: a clause about the outputs of the NPU: `scaled by 1.02`
    name: str  #: of the row, or of the parameter
    position: int  #: which operator of the step; the later ones are consequences
    tensors: tuple[Tensor, Tensor] | None = None
    more: str = ""  #: a clause about the arguments
    behind: bool = False  #: it is about what runs behind the last backward pass
    #: The weights of a later step show whether it is a divergence: operators of torch's own that one side has alone.
    settled_later: bool = False
    unsure: str = ""  #: inputs of which a dump of figures knows too little to call them the same
    of: str = ""  #: the row whose frames are those of the verdict, where it is not the one of `match`


#: Whether a layer trains, among the arguments of its function; source: torch 2.13.
_TRAINING = {
    "batch_norm": ("input.5", "kwargs.training"), "instance_norm": ("input.5", "kwargs.use_input_stats"),
    "dropout": ("input.2", "kwargs.training"),
}  # fmt: skip
_MODES = {"0": "eval", "False": "eval", "1": "training", "True": "training", None: "its default"}


def other_argument(each: Match) -> str:
    """A clause about a number among the arguments that is another one, or that one side alone gives."""
    assert each.npu is not None and each.bench is not None
    if each.mixed:
        return _left_argument(each, ("bool", "float", "str"))
    ours, theirs = ({one.name: value_of(one) for one in _numbers(row)} for row in (each.npu, each.bench))
    tensors = {tensor.name for row in (each.npu, each.bench) for tensor in row.inputs if tensor.is_tensor}
    for name in dict.fromkeys((*ours, *theirs)):
        one, other = ours.get(name), theirs.get(name)
        if one == other or name in tensors or any(device in f"{one} {other}" for device in ("npu", "cuda", "cpu")):
            continue
        if name in _TRAINING.get(each.row.api.rpartition(".")[2], ()):
            return f"; it is in {_MODES.get(one, one)} mode and not in {_MODES.get(other, other)} mode"
        if one is None or other is None:
            # What is given by its place on one side may be given by its name on the other.
            if name.startswith("kwargs.") and "None" not in (one, other):
                return f"; its argument {name} is {one or 'not given'} and not {other or 'given'}"
            continue
        return f"; its argument {name} is {one} and not {other}"
    return ""


def _numbers(row: Row) -> list[Tensor]:
    return [one for one in row.inputs if not one.is_tensor]


def _left_argument(each: Match, kinds: tuple[str, ...]) -> str:
    """Of two recorders, one of which names arguments by place: a clause about the one value of a kind that is left."""
    rows = [_numbers(row) for row in (each.npu, each.bench) if row is not None and each.mixed]
    for kind in kinds if rows else ():
        ours, theirs = ({value_of(one): one.name for one in row if one.dtype == kind} for row in rows)
        left, right = ours.keys() - theirs.keys(), theirs.keys() - ours.keys()
        if len(left) == len(right) == 1:
            return f"; its argument {ours[one := left.pop()]} is {one} and not {right.pop()}"
    return ""


def telling_argument(each: Match) -> str:
    """A clause about an argument that is another number or word, where that cannot be another way to say the same.

    Whole numbers may count axes from either end, and truth may say where a result is put."""
    assert each.npu is not None and each.bench is not None
    there = {tensor.name: tensor for tensor in _numbers(each.bench)}
    for one in _numbers(each.npu):
        other = there.get(one.name)
        if other is None or one.dtype != other.dtype or one.dtype not in ("float", "str"):
            continue
        ours, theirs = value_of(one), value_of(other)
        if ours != theirs and not any(device in f"{ours} {theirs}" for device in ("npu", "cuda", "cpu")):
            return f"its argument {one.name} is {ours} and not {theirs}"
    return _left_argument(each, ("float", "str")).removeprefix("; ")


def value_of(tensor: Tensor) -> str:
    """The value of an argument that is no tensor."""
    return str(tensor.digest) if tensor.max is None else f"{tensor.max:.6g}"


def one_sided(each: Match, other: Match | None = None) -> str:
    """A clause about an operator that one side has alone, or in place of which the other side has another."""
    if other is not None:
        npu, bench = (each, other) if each.npu is not None else (other, each)
        return f"where the other side has {bench.row.name}" if npu is each else f"has {npu.row.name} instead"
    return "only on the NPU's side" if each.bench is None else "missing on the NPU's side"


def how_far(tensors: tuple[Tensor, Tensor] | None, metrics: AllMetrics) -> str:
    """A clause about two tensors that differ."""
    if tensors is None:
        return "of other values"
    return how(*tensors, metrics.get((tensors[0].path or "", tensors[1].path or "")))


def class_of(row: Row) -> str:
    """`AdamW` of a row of an optimizer."""
    assert row.kind == OPTIMIZER_ROW
    return row.api.partition(".")[2]
