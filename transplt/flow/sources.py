"""Which expressions give an expression its value."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from transplt.flow.slots import Slots
from transplt.syntax.asks import last_name

_READS = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.NamedExpr)


def slots_read(slots: Slots, value: ast.expr) -> list[tuple[str, ast.expr]]:
    """The slots from which an expression may take its value, each with the expression that reads it."""
    if isinstance(value, (ast.Name, ast.Attribute, ast.Subscript)) or (  # most are
        isinstance(value, ast.Call) and last_name(value.func) != "format"
    ):
        slot = slots.of(value)
        return [] if slot is None else [(slot, value)]
    return [
        (slot, source)
        for source in sources(value)
        if isinstance(source, _READS) and (slot := slots.of(source)) is not None
    ]


def sources(value: ast.expr) -> Iterator[ast.expr]:
    """The expressions whose value an expression may take, or that a device string built by it begins with."""
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.Name, ast.Attribute)):
            yield node
        elif isinstance(node, ast.IfExp):
            stack += [node.body, node.orelse]
        elif isinstance(node, ast.BoolOp):
            stack += node.values
        elif isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            stack += node.elts
        elif isinstance(node, ast.NamedExpr):
            stack.append(node.value)
            yield node
        elif isinstance(node, ast.Starred):
            stack.append(node.value)
        elif isinstance(node, ast.JoinedStr):
            if node.values and isinstance(node.values[0], ast.FormattedValue):
                stack.append(node.values[0].value)
        elif isinstance(node, ast.BinOp):
            if isinstance(node.op, ast.Add):
                stack.append(node.left)
            elif isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant):
                _formatted(node.left, node.right.elts if isinstance(node.right, ast.Tuple) else [node.right], stack)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
            _formatted(node.func.value, node.args, stack)
            yield node
        else:
            yield node


def _formatted(pattern: ast.expr, values: list[ast.expr], stack: list[ast.expr]) -> None:
    """The value that a formatted text begins with."""
    if isinstance(pattern, ast.Constant) and str(pattern.value).startswith(("%s", "{}", "{0}")) and values:
        stack.append(values[0])
