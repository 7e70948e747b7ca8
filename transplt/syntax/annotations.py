"""Which strings stand for types."""

from __future__ import annotations

import ast

from transplt.syntax.scan import FUNCTIONS, parent

_TYPE_CALLS = {"cast": (0,), "TypeVar": (1, 2, 3, 4), "NewType": (1,), "ForwardRef": (0,)}


def is_annotation(node: ast.expr) -> bool:
    """True for a string in the place of a type; the members of a `Literal[...]` are values."""
    current: ast.AST = node
    above = parent(current)
    while isinstance(above, (ast.Subscript, ast.Tuple, ast.List, ast.BinOp)):
        if isinstance(above, ast.Subscript):
            head = above.value
            name = head.attr if isinstance(head, ast.Attribute) else getattr(head, "id", "")
            if current is not above.slice or name in ("Literal", "Annotated"):
                return False
        current, above = above, parent(above)
    if isinstance(above, (ast.arg, ast.AnnAssign)):
        return current is above.annotation
    if isinstance(above, FUNCTIONS):
        return current is above.returns
    if isinstance(above, ast.keyword):
        return above.arg == "bound"
    if isinstance(above, ast.Call) and current in above.args:
        last = above.func.attr if isinstance(above.func, ast.Attribute) else getattr(above.func, "id", "")
        return above.args.index(current) in _TYPE_CALLS.get(last, ())
    return False
