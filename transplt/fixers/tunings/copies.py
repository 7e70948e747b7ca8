"""Where a loop copies what it reads from a loader to the device."""

from __future__ import annotations

import ast
from collections import defaultdict
from typing import TypeGuard

from transplt.program.cards import MOVES, goes_to_card
from transplt.program.program import File
from transplt.syntax.nodes import begins, by_place, nodes_in
from transplt.syntax.scan import chain, parent, statement

_COPIES = MOVES | {"clone", "copy", "item", "size", "sum", "mean", "tolist", "float", "long", "astype"}


def copies_of(file: File, loop: ast.For | ast.AsyncFor) -> list[ast.Call]:
    """The calls in a loop that copy what it reads to a device: `.to(device)`, `.cuda()` of a target of the loop.

    Only the first move of a value counts, while the name still stands for what the loader gave.
    """
    targets = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
    stores: dict[str, list[tuple[int, int]]] = defaultdict(list)  # where a name is given another value in the loop
    for name in filter(_is_stored, nodes_in(loop.body)):
        stores[name.id].append(_start(name))
    found = []
    for node in nodes_in(loop.body):
        match node:
            case ast.Call(func=ast.Attribute(value=value)) if goes_to_card(file.names, node):
                target, here = _target_of(value, targets, loop), _start(node)
                if target is not None and not _hidden(node, loop) and all(at >= here for at in stores[target]):
                    found.append(node)
    return by_place(found)


def _start(node: ast.AST) -> tuple[int, int]:
    """Where the statement that holds a node begins."""
    return begins(statement(node))


def _is_stored(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)


def _hidden(node: ast.AST, loop: ast.AST) -> bool:
    """True inside of a function or lambda in the loop: it runs at another time."""
    for above in chain(node):
        if above is loop:
            return False
        if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return True
    return True


def _target_of(node: ast.expr, targets: set[str], loop: ast.AST) -> str | None:
    """The target of the loop that a value is, is an entry of, or comes from in a comprehension."""
    while isinstance(node, ast.Subscript):
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    for above in chain(node):
        if above is loop:
            break
        for generator in getattr(above, "generators", ()):
            if any(isinstance(each, ast.Name) and each.id == node.id for each in ast.walk(generator.target)):
                return _entries_of(generator.iter, targets)
    return node.id if node.id in targets else None


def _entries_of(node: ast.expr, targets: set[str]) -> str | None:
    """`batch` of `batch`, `batch.items()` and `batch.values()`."""
    match node:
        case (
            ast.Name(id=name) | ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="items" | "values"), args=[])
        ):
            return name if name in targets else None
    return None


def changed_on_host(call: ast.Call, loop: ast.For | ast.AsyncFor) -> bool:
    """True when the host's tensor is changed in place below a copy of it: the copy may still be under way."""
    node: ast.expr = call.func.value  # type: ignore[attr-defined]
    while isinstance(node, ast.Subscript):
        node = node.value
    name = getattr(node, "id", "")
    moved = statement(call)
    if any(each.id == name for each in filter(_is_stored, ast.walk(moved))):
        return False  # the name stands for the copy from here on
    start, names = _start(call), _views_of(name, loop)
    for inner in nodes_in(loop.body):
        if not isinstance(inner, ast.Name) or inner.id not in names or _start(inner) <= start:
            continue
        match parent(inner):
            case ast.AugAssign(target=target) if target is inner:
                return True
            case ast.Subscript(ctx=ast.Store() | ast.Del()):
                return True
            case ast.Attribute(attr=method) if method.endswith("_") and not method.endswith("__"):
                return True
    return False


def _views_of(name: str, loop: ast.For | ast.AsyncFor) -> set[str]:
    """The names in a loop that may stand for the memory of a tensor: `n` in `n = batch[0].numpy()`."""
    found, count = {name}, 0
    while len(found) > count:
        count = len(found)
        for node in nodes_in(loop.body):
            match node:
                case ast.Assign(targets=targets, value=value) if _root(value) in found:
                    found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


def _root(node: ast.expr) -> str:
    """The name at the start of a chain of entries and methods that copies to no device."""
    while not isinstance(node, ast.Name):
        match node:
            case ast.Call(func=ast.Attribute(attr="asarray" | "from_numpy" | "as_tensor"), args=[given, *_]):
                node = given
            case ast.Call(func=ast.Attribute(value=value, attr=method)) if method not in _COPIES:
                node = value
            case ast.Subscript(value=value) | ast.Attribute(value=value, attr="data" | "T" | "mT"):
                node = value
            case _:
                return ""
    return node.id
