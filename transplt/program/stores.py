"""Which stores of a name a place may read."""

from __future__ import annotations

import ast

from transplt.program.program import enclosing_function
from transplt.syntax.asks import place_in_block
from transplt.syntax.scan import FUNCTIONS, chain


def bound_since(node: ast.AST, source: ast.AST) -> bool:
    """True where a name is bound anew on every way from one place of its function to another: by a statement above it,
    or by a loop around it (`for x in train: ...` and then `for x in valid: ...`)."""
    if not isinstance(node, ast.Name) or enclosing_function(node) is not enclosing_function(source):
        return False
    below: ast.AST = node
    for above in chain(node):
        if isinstance(below, ast.stmt):
            block, place = place_in_block(below)
            for at in range(place - 1, -1, -1):
                if _binds(block[at], node.id):
                    return not any(_holds(each, source) for each in block[at : place + 1])
        if isinstance(above, (*FUNCTIONS, ast.ClassDef, ast.Lambda)):
            return False
        loop = isinstance(above, (ast.For, ast.AsyncFor)) and _names(above.target, node.id)
        opened = isinstance(above, (ast.With, ast.AsyncWith)) and _binds(above, node.id)
        if (loop or opened) and below in getattr(above, "body", ()):
            return not _holds(above, source)
        below = above
    return False


def _binds(node: ast.stmt, name: str) -> bool:
    """True for a statement that binds a name whenever it runs."""
    if isinstance(node, ast.Assign):
        return any(_names(target, name) for target in node.targets)
    if isinstance(node, ast.AnnAssign):
        return node.value is not None and _names(node.target, name)
    return isinstance(node, (ast.With, ast.AsyncWith)) and any(
        item.optional_vars is not None and _names(item.optional_vars, name) for item in node.items
    )


def _names(target: ast.expr, name: str) -> bool:
    return any(
        isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Store) for each in ast.walk(target)
    )


def _holds(node: ast.AST, inner: ast.AST) -> bool:
    return node is inner or node in chain(inner)
