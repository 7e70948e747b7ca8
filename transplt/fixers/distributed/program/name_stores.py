"""Whether a name is overwritten between two places of its function."""

from __future__ import annotations

import ast

from transplt.program.program import enclosing_function
from transplt.syntax.nodes import inner_nodes, place_in_block
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
    targets: list[ast.expr] = []
    match node:
        case ast.Assign():
            targets = node.targets
        case ast.AnnAssign(value=ast.expr()):
            targets = [node.target]
        case ast.With() | ast.AsyncWith():
            targets = [item.optional_vars for item in node.items if item.optional_vars is not None]
    return any(_names(target, name) for target in targets)


def _names(target: ast.expr, name: str) -> bool:
    return any(each.id == name and isinstance(each.ctx, ast.Store) for each in inner_nodes(target, ast.Name))


def _holds(node: ast.AST, inner: ast.AST) -> bool:
    return node is inner or node in chain(inner)
