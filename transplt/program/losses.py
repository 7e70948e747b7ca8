"""Losses of a training program: their names, and where their numbers are read."""

from __future__ import annotations

import ast

from transplt.program.loops import Loop, loops_around
from transplt.program.program import File, Function, enclosing_function
from transplt.program.training import Training
from transplt.syntax.asks import begins, by_place, call_of, ends
from transplt.syntax.scan import FUNCTIONS, chain, parent

#: What trains: a loop, or the function of one step.
Region = Loop | Function


def loss_readers(training: Training, file: File) -> list[tuple[Region, list[ast.Name]]]:
    """Where the numbers of losses are read: in what trains, and in the loops around it."""
    done: set[int] = set()
    found = []
    for region, names in _losses(training, file):
        home = region if isinstance(region, FUNCTIONS) else enclosing_function(region)
        for loop in (region, *(above for above in chain(region) if isinstance(above, (ast.For, ast.While)))):
            if loop is not region and enclosing_function(loop) is not home:
                break
            inside = [node for name in names for node in file.scan.names.get(name, ()) if loop in chain(node)]
            readers = [
                node
                for node in inside
                if id(node) not in done and _is_read(node) and enclosing_function(node) is home
            ]
            if loop is not region:
                readers = [node for node in readers if begins(node) >= ends(region)]
            done.update(id(node) for node in readers)
            if readers:
                found.append((loop, by_place(readers)))
    return found


def _losses(training: Training, own: File) -> list[tuple[Region, set[str]]]:
    """(innermost loop or else function, names of its losses)."""
    found: dict[int, tuple[Region, set[str]]] = {}
    for file, call in training.backwards:
        loop = next(iter(loops_around(call)), None) or enclosing_function(call)
        if file is not own or loop is None:
            continue
        assert isinstance(call.func, ast.Attribute)
        names = {node.id for node in ast.walk(call.func.value) if isinstance(node, ast.Name)}
        if isinstance(call.func.value, ast.Call):
            inner = call.func.value.args
            names = {node.id for argument in inner for node in ast.walk(argument) if isinstance(node, ast.Name)}
        found.setdefault(id(loop), (loop, set()))[1].update(names)
    return [(loop, _related(loop, names)) for loop, names in found.values()]


def _related(loop: Region, names: set[str]) -> set[str]:
    """Also the sums that losses make, and the losses of which a sum is made."""
    sums: list[tuple[str, set[str]]] = []
    for node in ast.walk(loop):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.BinOp):
            continue
        inside = list(ast.walk(node.value))
        if isinstance(node.targets[0], ast.Name) and not any(isinstance(n, (ast.Call, ast.Compare)) for n in inside):
            sums.append((node.targets[0].id, {n.id for n in inside if isinstance(n, ast.Name)}))
    for _ in range(len(sums) + 1):
        for name, parts in sums:
            if name in names:
                names = names | parts
            elif parts & names:
                names = names | {name}
    return names


def _is_read(node: ast.Name) -> bool:
    """`loss.item()`, `float(loss)`: the number is taken out."""
    if not isinstance(node.ctx, ast.Load):
        return False
    above = parent(node)
    if isinstance(above, ast.Attribute):
        return above.attr == "item" and call_of(above) is not None
    return isinstance(above, ast.Call) and getattr(above.func, "id", "") == "float" and node in above.args
