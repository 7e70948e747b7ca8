"""Where a loop copies what it reads from a loader to the device."""

from __future__ import annotations

import ast

from transplt.program.cards import MOVES, goes_to_card
from transplt.program.program import File
from transplt.syntax.asks import by_place
from transplt.syntax.scan import chain, parent, statement

_COPIES = MOVES | {"clone", "copy", "item", "size", "sum", "mean", "tolist", "float", "long", "astype"}


def copies_of(file: File, loop: ast.For | ast.AsyncFor) -> list[ast.Call]:
    """The calls in a loop that copy what it reads to a device: `.to(device)`, `.cuda()` of a target of the loop.

    Only the first move of a value counts, while the name still stands for what the loader gave.
    """
    targets = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
    stores = _stores(loop)
    found = []
    for item in loop.body:
        for node in ast.walk(item):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if not goes_to_card(file.names, node):
                continue
            name = _given_by(node.func.value, targets, loop)
            if name is None or _hidden(node, loop):
                continue
            if all(at >= _start(node) for at in stores.get(name, ())):
                found.append(node)
    return by_place(found)


def _start(node: ast.AST) -> tuple[int, int]:
    """Where the statement that holds a node begins."""
    holder = statement(node)
    return holder.lineno, holder.col_offset


def _stores(loop: ast.For | ast.AsyncFor) -> dict[str, list[tuple[int, int]]]:
    """Places of the statements in a loop that give a name another value."""
    found: dict[str, list[tuple[int, int]]] = {}
    for item in loop.body:
        for node in ast.walk(item):
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                found.setdefault(node.id, []).append(_start(node))
    return found


def _hidden(node: ast.AST, loop: ast.AST) -> bool:
    """True inside of a function or lambda in the loop: it runs at another time."""
    for above in chain(node):
        if above is loop:
            return False
        if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return True
    return True


def _given_by(node: ast.expr, targets: set[str], loop: ast.AST) -> str | None:
    """The target of the loop that a value is, is an entry of, or comes from in a comprehension."""
    while isinstance(node, ast.Subscript):
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    for above in chain(node):
        if above is loop:
            break
        if isinstance(above, (ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp)):
            for generator in above.generators:
                if any(isinstance(each, ast.Name) and each.id == node.id for each in ast.walk(generator.target)):
                    return _entries_of(generator.iter, targets)
    return node.id if node.id in targets else None


def _entries_of(node: ast.expr, targets: set[str]) -> str | None:
    """`batch` of `batch`, `batch.items()` and `batch.values()`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args:
        if node.func.attr not in ("items", "values"):
            return None
        node = node.func.value
    return node.id if isinstance(node, ast.Name) and node.id in targets else None


def _stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)


def changed_on_host(call: ast.Call, loop: ast.For | ast.AsyncFor) -> bool:
    """True when the host's tensor is changed in place below a copy of it: the copy may still be under way."""
    node: ast.expr = call.func.value  # type: ignore[attr-defined]
    while isinstance(node, ast.Subscript):
        node = node.value
    name = getattr(node, "id", "")
    moved = statement(call)
    if any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(moved) if _stored(each)):
        return False  # the name stands for the copy from here on
    start, names = _start(call), _views_of(name, loop)
    for item in loop.body:
        for inner in ast.walk(item):
            if not isinstance(inner, ast.Name) or inner.id not in names or _start(inner) <= start:
                continue
            above = parent(inner)
            if isinstance(above, ast.AugAssign) and above.target is inner:
                return True
            if isinstance(above, ast.Subscript) and not isinstance(above.ctx, ast.Load):
                return True
            if isinstance(above, ast.Attribute) and above.attr.endswith("_") and not above.attr.endswith("__"):
                return True
    return False


def _views_of(name: str, loop: ast.For | ast.AsyncFor) -> set[str]:
    """The names in a loop that may stand for the memory of a tensor: `n` in `n = batch[0].numpy()`."""
    found, count = {name}, 0
    while len(found) > count:
        count = len(found)
        for item in loop.body:
            for node in ast.walk(item):
                if isinstance(node, ast.Assign) and _root(node.value) in found:
                    found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


def _root(node: ast.expr) -> str:
    """The name at the start of a chain of entries and methods that copies to no device."""
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr not in _COPIES:
            last = node.func.attr
            in_numpy = last in ("asarray", "from_numpy", "as_tensor") and bool(node.args)
            node = node.args[0] if in_numpy else node.func.value
        elif isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr in ("data", "T", "mT")):
            node = node.value
        else:
            return ""
    return node.id
