"""Sums over the share of a rank: they are divided by the length of the share, or a finding notes that they are not."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from transplt.fixers.distributed.bench import Bench
from transplt.fixers.distributed.data import plain_attribute
from transplt.fixers.distributed.sharing import dataset_of, iterates, sampler_of
from transplt.program.loops import Loop
from transplt.program.program import File, Variable, enclosing_function, text_of
from transplt.program.training import Loader, loaders_of
from transplt.program.values import assigned
from transplt.syntax.asks import by_place, call_of, last_name
from transplt.syntax.scan import FUNCTIONS, chain, parent

#: Seconds in a minute and in an hour.
_OF_TIME = (60, 3600)
_TENSORS = frozenset({"torch.utils.data.TensorDataset", "torch.utils.data.dataset.TensorDataset"})


def write_lengths(bench: Bench) -> None:
    """Divide a sum over the share of the rank by the length of the share, where it is divided by that of all data."""
    changed: set[int] = set()
    added = [node for node in ast.walk(bench.file.scan.tree) if isinstance(node, ast.AugAssign)]
    sums = [node for node in by_place(added) if isinstance(node.op, ast.Add)]
    for node in bench.file.scan.names.get("len", ()):
        length = call_of(node)
        over = parent(length) if length is not None and length.args else None
        total = _divided(over) if over is not None else None
        if length is not None and over is not None and total is not None and total[1] is length:
            name = _loader_of_sum(bench, sums, total[0], length.args[0])
            if name:
                changed.add(id(over))
                message = "a sum over the share of the rank, divided by its length"
                bench.change(length.args[0], "NPU345", message, f"{name}.sampler")
    for divided, summed, by in _by_other_lengths(bench, sums):
        if id(divided) not in changed:
            shown = text_of(bench.file, by)
            bench.remark(
                divided,
                "NPU346",
                f"{summed} is summed up over the share of one rank here, and {shown} may count all of the data",
                "divide by the length of the share, len(loader.sampler)",
            )


def _divided(node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """What `a / b` and `a /= b` divide, and by what."""
    if not isinstance(node, (ast.BinOp, ast.AugAssign)) or not isinstance(node.op, ast.Div):
        return None
    return (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)


def _slots(bench: Bench, node: ast.AST) -> set[Variable]:
    """The variables that an expression names."""
    parts = [each for each in ast.walk(node) if isinstance(each, (ast.Name, ast.Attribute))]
    return {slot for each in parts if (slot := bench.program.slot(bench.file, each)) is not None}


def _last_sum(bench: Bench, sums: list[ast.AugAssign], slots: set[Variable], node: ast.expr) -> ast.AugAssign | None:
    """The last `total += ...` of the function above a place, for any of some variables; the first where none is."""
    function = enclosing_function(node)
    found = [
        each
        for each in sums
        if slots and bench.program.slot(bench.file, each.target) in slots and enclosing_function(each) is function
    ]
    above = [each for each in found if each.lineno < node.lineno]
    return above[-1] if above else next(iter(found), None)


def _loader_of_sum(bench: Bench, sums: list[ast.AugAssign], total: ast.expr, counted: ast.expr) -> str:
    """The loader whose share a sum goes over, where what is counted is all of its data; empty for other sums.

    `total` has to be summed up in a loop over that loader, except in a function that trains: there it is, by its name.
    """
    program, file, function = bench.program, bench.file, enclosing_function(counted)
    of = counted.value if isinstance(counted, ast.Attribute) and counted.attr == "dataset" else None
    summed = _last_sum(bench, sums, _slots(bench, total), counted)
    for at, loop, loaders in bench.training.loops:
        name = loader_name(bench, loop) if at is file else None
        if name is None:
            continue
        named = of is not None and text_of(file, of) == name
        if named and function in bench.training.functions:
            return name if _has_share(bench, loaders) else ""
        adds = summed is not None and loop in chain(summed)
        slot = program.slot(file, counted)
        if adds and (named or (slot is not None and all(slot in _alike(bench, loader) for loader in loaders))):
            return name if _has_share(bench, loaders) else ""
    return ""


def _has_share(bench: Bench, loaders: tuple[Loader, ...]) -> bool:
    """True where one of some loaders is shared out, and all have as many samples as their sampler says: not those with
    a sampler of their own, and no stream."""
    own = [sampler_of(each.call, name, at) for each in loaders for name, at in (("sampler", 3), ("batch_sampler", 4))]
    counted = not any(own) and not any(iterates(bench.program, loader) for loader in loaders)
    return counted and any(id(loader.call) in bench.verdict.shares.places for loader in loaders)


def _alike(bench: Bench, loader: Loader) -> set[Variable]:
    """The variables that are as long as the data of a loader: its dataset, and the tensors of a TensorDataset."""
    data = dataset_of(loader.call)
    if data is None:
        return set()
    slot = bench.program.slot(loader.file, data)
    made = assigned(bench.program, loader.file, data) if slot is not None else [(loader.file, data)]
    found = {slot} if slot is not None else set[Variable]()
    for file, call in made if len(made) == 1 else ():
        if isinstance(call, ast.Call) and file.names.qualified(call.func) in _TENSORS:
            found |= {given for each in call.args if (given := _lasting(bench, file, each)) is not None}
    return found


def _lasting(bench: Bench, file: File, node: ast.expr) -> Variable | None:
    """The variable that a name is, where it gets its value in one place."""
    found = file.names.lookup(node.id, file.scan.scope_of(node)) if isinstance(node, ast.Name) else None
    return bench.program.slot(file, node) if found is not None and len(found[1]) == 1 else None


def loader_name(bench: Bench, loop: Loop) -> str | None:
    """The source by which the loop names its loader: inside of enumerate, tqdm, zip and the like."""
    if isinstance(loop, ast.While):
        return None
    pending: list[ast.expr] = [loop.iter]
    while pending:
        node = pending.pop(0)
        if isinstance(node, (ast.Name, ast.Attribute)) or plain_attribute(node):
            if loaders_of(bench.program, bench.file, node):
                return _without_progress(bench, node)
        elif isinstance(node, ast.Call):
            pending += node.args
        elif isinstance(node, ast.IfExp):
            pending += [node.body, node.orelse]
    return None


def _without_progress(bench: Bench, node: ast.expr) -> str:
    """`bar = tqdm(loader)` is no loader: the name of what is inside."""
    slot = bench.program.slot(bench.file, node)
    values = bench.program.values.get(slot, []) if slot else []
    if len(values) == 1 and isinstance(values[0].node, ast.Call) and values[0].file is bench.file:
        call = values[0].node
        if not isinstance(bench.program.callee(bench.file, call), FUNCTIONS) and call.args:
            inner = call.args[0]
            if isinstance(inner, (ast.Name, ast.Attribute)) and loaders_of(bench.program, bench.file, inner):
                return text_of(bench.file, inner)
            deeper = inner.args[0] if isinstance(inner, ast.Call) and inner.args else None
            named = isinstance(deeper, (ast.Name, ast.Attribute))
            if deeper is not None and named and loaders_of(bench.program, bench.file, deeper):
                return text_of(bench.file, deeper)
    return text_of(bench.file, node)


# --- other divisors --------------------------------------------------------------------------------------------------


def _by_other_lengths(bench: Bench, sums: list[ast.AugAssign]) -> Iterator[tuple[ast.expr | ast.stmt, str, ast.expr]]:
    """Divisions of a sum over a share, below its loop, by a number or a length that does not depend on the share."""
    loops = [
        loop
        for at, loop, loaders in bench.training.loops
        if at is bench.file and all(id(loader.call) in bench.verdict.shares.places for loader in loaders)
    ]
    for node in ast.walk(bench.file.scan.tree) if loops else ():
        parts = _divided(node)
        if parts is None or any(isinstance(each, (ast.Div, ast.FloorDiv)) for each in ast.walk(parts[0])):
            continue
        summed = _last_sum(bench, sums, _slots(bench, parts[0]), parts[1])
        loop = next((each for each in loops if summed is not None and each in chain(summed)), None)
        if loop is None or summed is None or loop in chain(node) or loop.lineno > parts[1].lineno:
            continue
        figure = not isinstance(summed.value, ast.Constant) and _counted(summed.value) is None and not _is_time(summed)
        if figure and not _begins_anew(bench, loop, summed) and _is_fixed(bench, sums, parts[1], set()):
            assert isinstance(node, (ast.expr, ast.stmt))
            yield node, text_of(bench.file, summed.target), parts[1]


def _is_time(summed: ast.AugAssign) -> bool:
    names = [last_name(each).lower() for each in ast.walk(summed) if isinstance(each, (ast.Name, ast.Attribute))]
    return any("time" in name or "elapsed" in name for name in names)


def _begins_anew(bench: Bench, loop: Loop, summed: ast.AugAssign) -> bool:
    """True for a sum over some batches, which is set to zero within the loop."""
    wanted = bench.program.slot(bench.file, summed.target)
    stores = (each for node in ast.walk(loop) if isinstance(node, ast.Assign) for each in node.targets)
    return any(bench.program.slot(bench.file, each) == wanted for each in stores)


def _is_fixed(bench: Bench, sums: list[ast.AugAssign], node: ast.expr, seen: set[Variable]) -> bool:
    """True for a number, and for the length of what is no loader and is the same on all ranks; through variables."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float)) and node.value > 1 and node.value not in _OF_TIME
    if isinstance(node, ast.BinOp):
        return _is_fixed(bench, sums, node.left, seen) and _is_fixed(bench, sums, node.right, seen)
    if isinstance(node, ast.Name):
        slot = bench.program.slot(bench.file, node)
        if slot is None or slot in seen or _last_sum(bench, sums, {slot}, node) is not None:
            return False
        values = assigned(bench.program, bench.file, node)
        own = all(file is bench.file for file, _ in values)
        return bool(values) and own and all(_is_fixed(bench, sums, value, seen | {slot}) for _, value in values)
    counted = _counted(node)
    if counted is None or last_name(counted) in ("sampler", "batch_sampler"):
        return False
    return not bench.varies(counted) and not loaders_of(bench.program, bench.file, counted)


def _counted(node: ast.expr) -> ast.expr | None:
    """x of `len(x)`, `x.shape[0]` and `x.size(0)`."""
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
        return node.value.value if _is_zero(node.slice) else None
    if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords:
        return None
    if isinstance(node.func, ast.Attribute) and node.func.attr == "size":
        return node.func.value if _is_zero(node.args[0]) else None
    return node.args[0] if isinstance(node.func, ast.Name) and node.func.id == "len" else None


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0
