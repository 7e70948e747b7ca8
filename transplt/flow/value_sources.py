"""Which expressions give an expression its value."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from transplt.flow.slots import Slots
from transplt.syntax.nodes import last_name

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
        match node := stack.pop():
            case ast.Name() | ast.Attribute():  # most are
                yield node
            case ast.IfExp():
                stack += [node.body, node.orelse]
            case ast.BoolOp():
                stack += node.values
            case ast.Tuple() | ast.List() | ast.Set():
                stack += node.elts
            case ast.Starred():
                stack.append(node.value)
            case ast.JoinedStr(values=[ast.FormattedValue(value=first), *_]) | ast.BinOp(left=first, op=ast.Add()):
                stack.append(first)
            case ast.BinOp(left=ast.Constant() as pattern, op=ast.Mod(), right=right):
                _formatted(pattern, right.elts if isinstance(right, ast.Tuple) else [right], stack)
            case ast.JoinedStr() | ast.BinOp():
                pass
            case ast.NamedExpr():
                stack.append(node.value)
                yield node
            case ast.Call(func=ast.Attribute(value=pattern, attr="format")):
                _formatted(pattern, node.args, stack)
                yield node
            case _:
                yield node


def _formatted(pattern: ast.expr, values: list[ast.expr], stack: list[ast.expr]) -> None:
    """The value that a formatted text begins with."""
    if isinstance(pattern, ast.Constant) and str(pattern.value).startswith(("%s", "{}", "{0}")) and values:
        stack.append(values[0])
