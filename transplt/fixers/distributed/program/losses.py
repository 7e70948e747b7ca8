"""Losses of a training program: their names, and where their numbers are read or returned."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from transplt.program.gradients import without_gradients
from transplt.program.loops import LOOPS, Loop, loops_around
from transplt.program.program import File, Function, enclosing_function
from transplt.program.training import Training
from transplt.syntax.nodes import begins, by_place, call_of, ends, inner_nodes, last_name
from transplt.syntax.scan import FUNCTIONS, chain, parent, statement

#: What trains: a loop, or the function of one step; and the function or file that a loop stands in.
Region = Loop | Function | ast.Module


def loss_readers(training: Training, file: File) -> list[tuple[Region, list[ast.Name]]]:
    """Where the numbers of losses are read: in what trains, in the loops around it, and below those."""
    done: set[int] = set()
    found = []
    for region, names in _losses(training, file):
        home = region if isinstance(region, FUNCTIONS) else enclosing_function(region)
        for loop in (region, *_around(region)):
            below = loop is not region and not isinstance(loop, LOOPS)
            readers = [
                node for name in names for node in file.scan.names.get(name, ())
                if loop in chain(node) and id(node) not in done and enclosing_function(node) is home
                and (loop is region or begins(node) >= ends(region))
                and (_is_read(training, loop, node) or (below and isinstance(statement(node), ast.Return)))
                and (not below or _is_last(region, loop, node))
            ]  # fmt: skip
            done.update(map(id, readers))
            if readers:
                found.append((loop, by_place(readers)))
    return found


def taken_out(file: File) -> Iterator[ast.expr]:
    """x of `x.item()`, `float(x)`, `f"{x}"` and `print(x)`."""
    yield from (node.value for node in file.scan.attributes.get("item", ()) if call_of(node) is not None)
    for name in file.scan.names.get("float", ()):
        call = call_of(name)
        yield from call.args if call is not None else ()
    printed = (call for name in file.scan.names.get("print", ()) if (call := call_of(name)) is not None)
    shown = [each for call in printed for each in call.args]
    shown += [each.value for each in inner_nodes(file.scan.tree, ast.FormattedValue)]
    yield from (each for each in shown if isinstance(each, (ast.Name, ast.Attribute)))


def _around(region: Region) -> Iterator[Region]:
    """The loops around a loop that trains, the innermost first, and the function or file that holds them."""
    for above in chain(region) if isinstance(region, LOOPS) else ():
        if isinstance(above, (ast.For, ast.While, ast.Module, *FUNCTIONS)):
            yield above
        if isinstance(above, (*FUNCTIONS, ast.ClassDef)):
            break


def _is_last(region: Region, around: ast.AST, node: ast.Name) -> bool:
    """True for a name that gets no other value between what trains and here."""
    stores = (each for each in inner_nodes(around, ast.Name) if isinstance(each.ctx, ast.Store) and each.id == node.id)
    return region in chain(max((each for each in stores if begins(each) < begins(node)), key=begins, default=node))


def _losses(training: Training, own: File) -> list[tuple[Region, set[str]]]:
    """(innermost loop or else function, names of its losses)."""
    found: dict[int, tuple[Region, set[str]]] = {}
    for file, call in training.backwards:
        loop = next(iter(loops_around(call)), None) or enclosing_function(call)
        if file is not own or loop is None:
            continue
        assert isinstance(call.func, ast.Attribute)
        names = _read_in(call.func.value)
        if isinstance(call.func.value, ast.Call):
            names = set().union(*map(_read_in, call.func.value.args))
        found.setdefault(id(loop), (loop, set()))[1].update(names)
    return [(loop, _related(loop, names)) for loop, names in found.values()]


def _read_in(value: ast.expr) -> set[str]:
    """The names in an expression, but for those of which it takes a field: `args` of `args.weight * loss`."""
    names = inner_nodes(value, ast.Name)
    return {each.id for each in names if not isinstance(above := parent(each), ast.Attribute) or call_of(above)}


def _related(loop: Region, names: set[str]) -> set[str]:
    """Also the sums that losses make, and the losses of which a sum is made."""
    sums: list[tuple[str, set[str]]] = []
    for node in ast.walk(loop):
        match node:
            case ast.Assign(targets=[ast.Name(id=name), *_], value=ast.BinOp() as value):
                if not any(isinstance(each, (ast.Call, ast.Compare)) for each in ast.walk(value)):
                    sums.append((name, _read_in(value)))
    for _ in range(len(sums) + 1):
        for name, parts in sums:
            if name in names:
                names = names | parts
            elif parts & names:
                names = names | {name}
    return names


def _is_read(training: Training, region: Region | ast.Module, node: ast.Name) -> bool:
    """`loss.item()`, `float(loss)`: the number is taken out, of a loss of this rank."""
    if without_gradients(node) and _is_evaluated(training, region, node):
        return False
    match above := parent(node):
        case ast.Attribute(attr="item"):
            return call_of(above) is not None
        case ast.Call(func=func, args=given) if last_name(func) in ("float", "print", "format"):
            return node in given
        case ast.Tuple():  # `"%f %f" % (loss, rate)`
            above = parent(above)
    return isinstance(above, ast.FormattedValue) or (
        isinstance(above, ast.BinOp) and isinstance(above.op, ast.Mod) and isinstance(above.left, ast.Constant)
    )


def _is_evaluated(training: Training, region: Region | ast.Module, node: ast.Name) -> bool:
    """True for a loss that a loop of its own works out: without gradients all ranks go through all of its data."""
    for loop in itertools.takewhile(lambda each: each is not region, loops_around(node)):
        if any(each.id == node.id and isinstance(each.ctx, ast.Store) for each in inner_nodes(loop, ast.Name)):
            return not any(loop is each for _, each in training.regions)
    return False
