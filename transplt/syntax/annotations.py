"""Which strings stand for types."""

from __future__ import annotations

import ast

from transplt.syntax.asks import index_in, last_name
from transplt.syntax.scan import FUNCTIONS, parent

_TYPE_CALLS = {"cast": (0,), "TypeVar": (1, 2, 3, 4), "NewType": (1,), "ForwardRef": (0,)}


def is_annotation(node: ast.expr) -> bool:
    """True for a string in the place of a type; the members of a `Literal[...]` are values."""
    current: ast.AST = node
    above = parent(current)
    while isinstance(above, (ast.Subscript, ast.Tuple, ast.List, ast.BinOp)):
        values = ("Literal", "Annotated")
        if isinstance(above, ast.Subscript) and (current is not above.slice or last_name(above.value) in values):
            return False
        current, above = above, parent(above)
    if isinstance(above, (ast.arg, ast.AnnAssign)):
        return current is above.annotation
    if isinstance(above, FUNCTIONS):
        return current is above.returns
    if isinstance(above, ast.keyword):
        return above.arg == "bound"
    places = _TYPE_CALLS.get(last_name(above.func), ()) if isinstance(above, ast.Call) else ()
    return bool(places) and index_in(above, "args", current) in places
