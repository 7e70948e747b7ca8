"""Operators of one side alone that are no divergence, since nothing behind them is another.

What only moves data, memory that nobody has written, results that nobody takes, and operators in place of which the
other side has others that give the same (a fused attention, `torch.relu` for `F.relu`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from transplt.precision.distance import by_figures, tolerance
from transplt.precision.match import UNWRITTEN, Match, Matched
from transplt.precision.record import API, BACKWARD, FORWARD, GRADIENT, MODULE, OPTIMIZER, Row, Tensor
from transplt.rules.torch_callables import TENSOR, names_of

#: They give the same elements in the same order, in another shape.
_RESHAPES = frozenset("view reshape flatten unflatten squeeze unsqueeze ravel view_as reshape_as".split())
_MOVES = UNWRITTEN | names_of(TENSOR, "ports") | {"requires_grad_"}
Print = tuple[object, ...]


def print_of(tensor: Tensor) -> Print:
    """By what a tensor is known again when it goes into another operator, as a view of another shape as well."""
    return (tensor.max, tensor.min, tensor.shape if tensor.dtype == "bool" else tensor.size)


def harmless(model: Sequence[Match]) -> frozenset[int]:
    """The positions of such operators."""
    found = {
        number
        for number, each in enumerate(model)
        if each.one_sided and (moves(each.row) or each.row.api.rpartition(".")[2] in _RESHAPES or _counts(each.row))
    }
    found |= {*_called_otherwise(model)}
    replaced = _replaced(model)
    found |= replaced
    calls = {(model[number].npu is None, model[number].row.api, model[number].row.index) for number in replaced}
    unused = {number for side in ("npu", "bench") for number in _unused(model, side)}
    for number, each in enumerate(model):
        row = each.row
        if each.one_sided and row.phase == BACKWARD and (each.npu is None, row.api, row.index) in calls:
            found.add(number)
    return frozenset(found | unused)


def harmless_behind(rows: Sequence[Match], matched: Matched) -> frozenset[int]:
    """Those behind the last backward pass: what only moves data, and what touches no gradient, weight or state and goes
    into nothing that does (a norm or a loss that is shown)."""
    if not any(each.one_sided for each in rows):
        return frozenset()
    kept = _kept(rows, matched)
    found = set()
    taken: set[Print] = set()
    for number in range(len(rows) - 1, -1, -1):
        each, row = rows[number], rows[number].row
        if each.one_sided:
            made = {print_of(tensor) for tensor in row.outputs if tensor.is_tensor}
            inputs = {print_of(tensor) for tensor in row.inputs if tensor.is_tensor and tensor.size}
            touches = bool((inputs | made) & kept) if writes_in_place(row) else False
            if moves(row) or not (touches or made & taken):
                found.add(number)
                continue
        for one in (each.npu, each.bench):
            taken.update(print_of(tensor) for tensor in (one.inputs if one is not None else ()) if tensor.is_tensor)
    return frozenset(found)


def _kept(rows: Sequence[Match], matched: Matched) -> set[Print]:
    """Gradients, weights and states, and what is made by writing into them."""
    kept: set[Print] = set()
    for row in (*matched.npu.rows, *matched.bench.rows):
        if row.kind in (GRADIENT, OPTIMIZER) or row.phase == BACKWARD:
            kept.update(print_of(each) for each in (*row.inputs, *row.outputs) if each.is_tensor)
        kept.update(print_of(each) for each in row.parameters if each.is_tensor)
    for each in rows:
        if writes_in_place(each.row) and any(print_of(tensor) in kept for tensor in each.row.inputs):
            kept.update(print_of(tensor) for tensor in each.row.outputs if tensor.is_tensor)
    return kept


def writes_in_place(row: Row) -> bool:
    """True for what changes a tensor that it is given, as collectives do."""
    name = row.api.rpartition(".")[2]
    named = (name.endswith("_") and not name.endswith("__")) or name.startswith("__i")
    return named or row.api.startswith("Distributed")


def moves(row: Row) -> bool:
    """True for what only moves data, or makes memory that nobody has written."""
    return row.api.rpartition(".")[2] in _MOVES


def _counts(row: Row) -> bool:
    """True for a number that is counted up, as the batches of a norm that trains."""
    whole = all(each.size == 1 and "int" in each.dtype for each in row.tensors if each.is_tensor)
    return row.api.endswith(".add_") and row.phase == FORWARD and whole


def _called_otherwise(model: Sequence[Match]) -> Iterator[int]:
    """Modules that one side alone calls, and of which the other side has the result, by a function."""
    calls = [number for number, each in enumerate(model) if each.one_sided and each.row.kind == MODULE]
    if not calls:
        return
    sides = ([row for each in model if (row := getattr(each, side)) is not None] for side in ("npu", "bench"))
    made = [{print_of(one) for row in rows if row.kind == API for one in row.outputs} for rows in sides]
    spared = {
        (model[number].npu is None, model[number].row.api, model[number].row.index)
        for number in calls
        if model[number].row.phase == FORWARD
        and {print_of(each) for each in model[number].row.outputs} <= made[model[number].npu is not None]
    }
    for number in calls:
        if (model[number].npu is None, model[number].row.api, model[number].row.index) in spared:
            yield number


def _replaced(model: Sequence[Match]) -> set[int]:
    """Operators of a gap in which both sides have some, and both end with the same result, or leave the same ones."""
    found: set[int] = set()
    for gap in _gaps(model):
        npu = [row for number in gap if (row := model[number].npu) is not None]
        bench = [row for number in gap if (row := model[number].bench) is not None]
        if npu and bench and (_same(npu[-1].outputs, bench[-1].outputs) or _same(_left_by(npu), _left_by(bench))):
            found.update(gap)
    return found


def _left_by(rows: Sequence[Row]) -> list[Tensor]:
    """The results of operators that none of them takes."""
    taken = {print_of(each) for row in rows for each in row.inputs if each.is_tensor}
    return [each for row in rows for each in row.outputs if each.is_tensor and print_of(each) not in taken]


def _gaps(model: Sequence[Match]) -> Iterator[list[int]]:
    """Forward operators that one side has alone, between two that both have."""
    gap: list[int] = []
    for number, each in enumerate(model):
        if each.one_sided and each.row.phase == FORWARD and each.row.kind == API:
            gap.append(number)
        elif gap:
            yield gap
            gap = []
    if gap:
        yield gap


def _same(npu: Sequence[Tensor], bench: Sequence[Tensor]) -> bool:
    """Whether these are the same; of integers beside others the largest and the smallest say it."""
    ours, theirs = ([each for each in side if each.is_tensor] for side in (npu, bench))
    if all(one.norm is None for one in ours) or len(ours) != len(theirs):
        return False
    return all(
        one.size == other.size and one.max is not None
        and by_figures(one._replace(shape=other.shape), other) <= tolerance(one, other, None)
        for one, other in zip(ours, theirs, strict=True)
    )  # fmt: skip


def _unused(model: Sequence[Match], side: str) -> Iterator[int]:
    """Operators without a backward row whose results go into no other: a loss that is shown, a measure of accuracy."""
    rows: list[tuple[int, Row, bool]] = [
        (number, row, each.one_sided) for number, each in enumerate(model) if (row := getattr(each, side)) is not None
    ]
    back = {(row.api, row.index) for _, row, _ in rows if row.phase == BACKWARD}
    if not back:  # of a run without a backward pass the last result is what it is for
        return
    taken: set[Print] = set()
    for number, row, alone in reversed(rows):
        changes = row.api.endswith("_") and not row.api.endswith(".zero_")
        if alone and row.phase == FORWARD and row.kind == API and not changes:
            made = {print_of(each) for each in row.outputs if each.is_tensor}
            if (row.api, row.index) not in back and not made & taken:
                yield number
                continue  # what only goes into what nobody takes is not taken either
        if row.kind != MODULE or row.phase == FORWARD:
            taken.update(print_of(each) for each in (*row.inputs, *row.parameters) if each.is_tensor)
