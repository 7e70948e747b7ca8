"""What a training is given in a step: the data of the outermost modules, and the labels of its losses."""

from __future__ import annotations

from collections.abc import Iterator

from transplt.base.render.cell import figure
from transplt.precision.record import FORWARD, MODULE, Record, Row, Tensor
from transplt.precision.watch.roles import is_floating

#: Labels of this number are left out unless `ignore_index` names another. Source: torch.nn.functional.cross_entropy.
_IGNORED = -100
#: Functions whose target is a class, and which may be told what to leave out.
_OF_CLASSES = ("cross_entropy", "nll_loss")


def data(record: Record) -> Iterator[tuple[Row, Tensor]]:
    """The first input of each outermost module; nothing where the dump does not say what is around what."""
    for row in record.rows if record.parents else ():
        if row.phase == FORWARD and row.kind == MODULE and not record.parents.get(row.name):
            yield from ((row, each) for each in row.inputs[:1] if each.is_tensor and each.size > 1)


def is_constant(tensor: Tensor) -> bool:
    """True where all elements are the same number: of integers, such as masks and first tokens, that says nothing."""
    return is_floating(tensor) and tensor.min == tensor.max


def labels_out_of_range(row: Row) -> tuple[Tensor, str] | None:
    """The target of a loss with labels that are no class of its first input, and why."""
    inputs = {tensor.name.rpartition(".")[2]: tensor for tensor in row.inputs}
    scores, target = (inputs.get(place, inputs.get(name)) for place, name in (("0", "input"), ("1", "target")))
    told = row.phase != FORWARD or row.api.rpartition(".")[2] not in _OF_CLASSES or "4" in inputs
    if told or scores is None or target is None or "int" not in target.dtype or not target.is_tensor:
        return None
    low, high = target.min, target.max
    if not scores.shape or low is None or high is None:
        return None
    classes = scores.shape[min(1, len(scores.shape) - 1)]
    spared = inputs["ignore_index"].max if "ignore_index" in inputs else _IGNORED
    if any(not 0 <= label < classes and label != spared for label in (low, high)):
        return target, f"labels from {figure(low)} to {figure(high)}, and {classes} classes"
    return None
