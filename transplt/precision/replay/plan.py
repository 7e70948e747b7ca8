"""Which operators of a record can be computed again, and with what; which cannot, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from transplt.precision.calls import Literals, Uncallable, expression, gradients
from transplt.precision.record import API, BACKWARD, FORWARD, Record, Row, Tensor, named

_FLOATS = ("float16", "bfloat16", "float32")


@dataclass(frozen=True, slots=True)
class Backward:
    """The backward row of a call: the gradients of its results that went in, and those of its tensors that came out."""

    row: Row
    given: tuple[tuple[int, str], ...]  #: (which result, its gradient as a literal)
    #: Which tensors of the arguments need a gradient, where the row is of the last node of the graph alone.
    node: tuple[int, ...]
    #: (which tensor of the arguments, or which gradient of that node; what was recorded)
    wanted: tuple[tuple[int, Tensor], ...]


@dataclass(frozen=True, slots=True)
class Call:
    """One recorded call that can be made again."""

    row: Row
    expression: str  #: of `args` and `kwargs`
    arguments: tuple[str, str]  #: both as literals
    outputs: tuple[Tensor, ...]
    #: The type that the operator may have computed in without a trace in the dump, as autocast makes it: `float16`.
    cast: str
    afterwards: bool  #: its first input may be that after the call
    backward: Backward | None


@dataclass(slots=True)
class Plan:
    folder: str
    calls: list[Call] = field(default_factory=list)
    #: (name of a row, why all such are left out, more about this one)
    left: list[tuple[str, str, str]] = field(default_factory=list)


def plan(record: Record, name: str | None = None) -> Plan:
    """What of a record, or of the operators in it that `name` means, can be computed again. Modules are no operators:
    those in them are."""
    rows = [row for row in record.rows if row.kind == API]
    backward = {(row.api, row.index): row for row in rows if row.phase == BACKWARD}
    wanted = {(row.api, row.index) for row in named(rows, name)} if name is not None else None
    by_node = recorded_by_node(record)
    found = Plan(record.folder)
    for row in rows:
        if row.phase != FORWARD or (wanted is not None and (row.api, row.index) not in wanted):
            continue
        back = backward.pop((row.api, row.index), None)
        try:
            found.calls.append(_call(record.folder, row, back, found, by_node))
        except Uncallable as error:
            found.left.append((row.name, error.clause, error.detail))
            if back is not None:
                found.left.append((back.name, error.clause, ""))
    for key, row in backward.items():
        if wanted is None or key in wanted:
            found.left.append((row.name, "has no forward call in the dump", ""))
    return found


def _call(folder: str, row: Row, back: Row | None, found: Plan, by_node: bool) -> Call:
    text = expression(row)
    outputs = tuple(tensor for tensor in row.outputs if tensor.is_tensor)
    writer = Literals(folder, row, draws=False, device="DEVICE")
    arguments = writer.arguments()
    if not outputs:
        raise Uncallable(row, "gives no tensor")
    for tensor in outputs:
        writer.tensor(tensor)
    backward = None
    if back is not None:
        try:
            backward = _backward(folder, row, back, outputs, by_node)
        except Uncallable as error:
            found.left.append((back.name, error.clause, error.detail))
    return Call(row, text, arguments, outputs, _cast(row, outputs), _afterwards(row, outputs[0]), backward)


def _afterwards(row: Row, output: Tensor) -> bool:
    """Whether an operator that writes into its input seems to be given its own result: some recorders look too late."""
    first = next((tensor for tensor in row.inputs if tensor.is_tensor), None)
    return _writes(row) and first is not None and (first.shape, *first[3:7]) == (output.shape, *output[3:7])


def _writes(row: Row) -> bool:
    function = row.api.rpartition(".")[2]
    in_place = function.endswith("_") and not function.endswith("__")
    return in_place or function.startswith("__i") or any(
        tensor.name == "kwargs.inplace" and tensor.max for tensor in row.inputs
    )  # fmt: skip


def _backward(folder: str, row: Row, back: Row, outputs: Sequence[Tensor], by_node: bool) -> Backward:
    """The first of both sides whose shapes fit is that of the results: recorders differ in their order."""
    writer = Literals(folder, back, draws=False)
    if by_node and _writes(row):
        raise Uncallable(back, "writes into its input, and the dump has only the last node of its backward pass")
    figures = [(each.dtype, each.shape, *each[3:7]) for each in row.inputs if each.requires_grad and each.size > 1]
    if not by_node and len({*figures}) < len(figures):
        raise Uncallable(back, "is given one tensor in several places, of which the dump has one gradient")
    for results, made in _sides(back, outputs):
        numbers = ((tensor.name.partition(".")[2], tensor) for tensor in made if by_node and row.inputs)
        leaves = [(int(at), each) for at, each in numbers if at.isdecimal()] if by_node else _leaves(row, made)
        if leaves:
            for _, tensor in leaves:
                writer.tensor(tensor)
            gradients = tuple((number, writer.tensor(each)) for number, each in results)
            return Backward(back, gradients, _differentiable(row) if by_node else (), tuple(leaves))
    raise Uncallable(back, "has no gradients of the shapes of its tensors")


def recorded_by_node(record: Record) -> bool:
    """Whether backward rows are of the last node of the graph, as msprobe 26 has them, and not of the whole call.

    The gradients of a linear layer show it: the node is that of `addmm`, with the bias first and the weight turned.
    """
    rows = {(row.api, row.index, row.phase): row for row in record.rows if row.api == "Functional.linear"}
    pairs = [(row, rows.get((row.api, row.index, BACKWARD))) for row in rows.values() if row.phase == FORWARD]
    return any(
        back is not None and not any(_leaves(row, made) for _, made in _sides(back, row.outputs)) for row, back in pairs
    )


_Numbered = list[tuple[int, Tensor]]


def _sides(back: Row, outputs: Sequence[Tensor]) -> Iterator[tuple[_Numbered, list[Tensor]]]:
    """The gradients that went in, by the number of the result, and those that came out."""
    one, other = gradients(back)
    results = [tensor for tensor in outputs if tensor.is_tensor]
    for given, made in ((one, other), (other, one)):
        if fitted := _fitted(given, dict(enumerate(enumerate(results)))):
            yield fitted, made


def _leaves(row: Row, made: Sequence[Tensor]) -> _Numbered:
    """Gradients by the number of the tensor among the arguments: they are numbered as the tensors are, as all arguments
    are, or as those are that need a gradient."""
    taken = [*enumerate(tensor for tensor in row.inputs if tensor.is_tensor)]
    needing = [each for each in taken if each[1].requires_grad]
    by_place = {int(each[1].name[6:]): each for each in taken if each[1].name[6:].isdecimal()}
    return _fitted(made, dict(enumerate(taken))) or _fitted(made, by_place) or _fitted(made, dict(enumerate(needing)))


def _differentiable(row: Row) -> tuple[int, ...]:
    taken = [*enumerate(tensor for tensor in row.inputs if tensor.is_tensor)]
    return tuple(number for number, tensor in taken if tensor.requires_grad is not False and "float" in tensor.dtype)


def _fitted(found: Sequence[Tensor], places: Mapping[int, tuple[int, Tensor]]) -> _Numbered:
    """Each gradient with the number of the tensor at its place; none where a shape or a type does not fit."""
    fitted: _Numbered = []
    for tensor in found:
        place = tensor.name.partition(".")[2]
        number, there = places.get(int(place) if place.isdecimal() else -1, (-1, None))
        if there is None or there.shape != tensor.shape or "float" not in there.dtype or there.requires_grad is False:
            return []
        fitted.append((number, tensor))
    return fitted


def _cast(row: Row, outputs: Sequence[Tensor]) -> str:
    """Under autocast, inputs of float32 give float16, and those of float16 float32; no dump records that it was on."""
    given = {tensor.dtype for tensor in row.inputs if tensor.is_tensor and tensor.dtype in _FLOATS}
    made = {tensor.dtype for tensor in outputs if tensor.dtype in _FLOATS}
    return next(iter(made)) if len(made) == 1 and given and given != made else ""
