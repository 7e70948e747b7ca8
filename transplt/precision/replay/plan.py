"""Which operators of a record can be computed again, and with what; which cannot, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from transplt.precision.calls import Literals, Uncallable, expression, gradients
from transplt.precision.record import API, BACKWARD, FORWARD, Record, Row, Tensor, named

_FLOATS = ("float16", "bfloat16", "float32")


@dataclass(frozen=True, slots=True)
class Backward:
    """The backward row of a call: the gradients of its results that went in, and those of its tensors that came out."""

    row: Row
    given: tuple[tuple[int, str], ...]  #: (which result, its gradient as a literal)
    wanted: tuple[tuple[int, Tensor], ...]  #: (which tensor of the arguments, its recorded gradient)


@dataclass(frozen=True, slots=True)
class Call:
    """One recorded call that can be made again."""

    row: Row
    expression: str  #: of `args` and `kwargs`
    arguments: tuple[str, str]  #: both as literals
    outputs: tuple[Tensor, ...]
    #: The type that the operator may have computed in without saying so, as autocast makes it: `float16`.
    cast: str
    backward: Backward | None


@dataclass(slots=True)
class Plan:
    folder: str
    calls: list[Call] = field(default_factory=list)
    #: (name of a row, why all such are left out, what else there is to say of this one)
    left: list[tuple[str, str, str]] = field(default_factory=list)


def plan(record: Record, name: str | None = None) -> Plan:
    """What of a record, or of the operators in it that `name` means, can be computed again. Modules are no operators:
    those in them are."""
    rows = [row for row in record.rows if row.kind == API]
    backward = {(row.api, row.index): row for row in rows if row.phase == BACKWARD}
    wanted = {(row.api, row.index) for row in named(rows, name)} if name is not None else None
    found = Plan(record.folder)
    for row in rows:
        if row.phase != FORWARD or (wanted is not None and (row.api, row.index) not in wanted):
            continue
        back = backward.pop((row.api, row.index), None)
        try:
            found.calls.append(_call(record.folder, row, back, found))
        except Uncallable as error:
            found.left.append((row.name, error.clause, error.detail))
            if back is not None:
                found.left.append((back.name, error.clause, ""))
    for key, row in backward.items():
        if wanted is None or key in wanted:
            found.left.append((row.name, "has no forward call in the dump", ""))
    return found


def _call(folder: str, row: Row, back: Row | None, found: Plan) -> Call:
    text = expression(row)
    outputs = tuple(tensor for tensor in row.outputs if tensor.is_tensor)
    writer = Literals(folder, row, draws=False, device="DEVICE")
    arguments = writer.arguments()
    if not outputs:
        raise Uncallable(row, "gives no tensor")
    for tensor in outputs:
        writer.tensor(tensor)
    first = next((tensor for tensor in row.inputs if tensor.is_tensor), None)
    if _writes(row) and first is not None and (first.shape, *first[3:7]) == (outputs[0].shape, *outputs[0][3:7]):
        raise Uncallable(row, "writes into its input, which the dump has only as it was afterwards")
    backward = None
    if back is not None:
        try:
            backward = _backward(folder, row, back, outputs)
        except Uncallable as error:
            found.left.append((back.name, error.clause, error.detail))
    return Call(row, text, arguments, outputs, _cast(row, outputs), backward)


def _writes(row: Row) -> bool:
    function = row.api.rpartition(".")[2]
    in_place = function.endswith("_") and not function.endswith("__")
    return in_place or function.startswith("__i") or any(
        tensor.name == "kwargs.inplace" and tensor.max for tensor in row.inputs
    )  # fmt: skip


def _backward(folder: str, row: Row, back: Row, outputs: Sequence[Tensor]) -> Backward:
    """The first of both sides whose shapes fit is that of the results: recorders differ in their order."""
    taken = [tensor for tensor in row.inputs if tensor.is_tensor]
    writer = Literals(folder, back, draws=False)
    sides = [*gradients(back)]
    # Gradients are numbered as the tensors are, or as all arguments are.
    by_tensor = {number: (number, tensor) for number, tensor in enumerate(taken)}
    by_place = {int(each.name[6:]): (number, each) for number, each in by_tensor.values() if each.name[6:].isdecimal()}
    for given, made in (sides, sides[::-1]):
        results = _fitted(given, {number: (number, tensor) for number, tensor in enumerate(outputs)})
        leaves = _fitted(made, by_tensor) or _fitted(made, by_place)
        if results and leaves:
            for _, tensor in leaves:
                writer.tensor(tensor)
            return Backward(back, tuple((number, writer.tensor(each)) for number, each in results), tuple(leaves))
    raise Uncallable(back, "has no gradients of the shapes of its tensors")


def _fitted(found: Sequence[Tensor], places: dict[int, tuple[int, Tensor]]) -> list[tuple[int, Tensor]]:
    """Each gradient with the number of the tensor at its place; none where a shape or a type does not fit."""
    fitted: list[tuple[int, Tensor]] = []
    for tensor in found:
        place = tensor.name.partition(".")[2]
        number, there = places.get(int(place) if place.isdecimal() else -1, (-1, None))
        if there is None or there.shape != tensor.shape or "float" not in there.dtype:
            return []
        fitted.append((number, tensor))
    return fitted


def _cast(row: Row, outputs: Sequence[Tensor]) -> str:
    """Under autocast, inputs of float32 give float16, and those of float16 float32; no dump says that it was on."""
    given = {tensor.dtype for tensor in row.inputs if tensor.is_tensor and tensor.dtype in _FLOATS}
    made = {tensor.dtype for tensor in outputs if tensor.dtype in _FLOATS}
    return next(iter(made)) if len(made) == 1 and given and given != made else ""
