"""Which strings stand for types."""

from __future__ import annotations

import ast

from transplt.syntax.nodes import called_name, index_in, last_name
from transplt.syntax.scan import parent

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
    match above:
        case ast.arg(annotation=place) | ast.AnnAssign(annotation=place):
            return current is place
        case ast.FunctionDef(returns=place) | ast.AsyncFunctionDef(returns=place):
            return current is place
        case ast.keyword(arg=name):
            return name == "bound"
        case ast.Call(func=func) if places := _TYPE_CALLS.get(last_name(func)):
            return index_in(above, "args", current) in places
    return False


def is_asked_for(node: ast.AST) -> bool:
    """True for the class that `isinstance` asks for."""
    above = parent(node)
    while isinstance(above, (ast.Tuple, ast.BinOp)):
        above = parent(above)
    return called_name(above) in ("isinstance", "issubclass")
