"""What a condition comes to with what a call gives its function."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from transplt.program.program import Function
from transplt.syntax.asks import defaults_of, last_name


def defaults(function: Function) -> Iterator[tuple[str, ast.expr]]:
    """The parameters that have a default, each with it."""
    for argument, value in defaults_of(function.args):
        yield argument.arg, value


def value_of(test: ast.expr, given: Mapping[str, ast.expr]) -> bool | None:
    """What a condition comes to with the arguments of a call; None where that cannot be seen."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = value_of(test.operand, given)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        values = [value_of(each, given) for each in test.values]
        decides = isinstance(test.op, ast.Or)
        if decides in values:
            return decides
        return None if None in values else not decides
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _compared(test, given)
    known, value = _constant(test, given)
    if known:
        return bool(value)
    return True if isinstance(test, ast.Name) and _is_made(given.get(test.id)) else None


def _is_made(node: ast.expr | None) -> bool:
    """True for a call of a class, by its name: an optimizer, a scaler."""
    return isinstance(node, ast.Call) and last_name(node.func)[:1].isupper()


def _compared(test: ast.Compare, given: Mapping[str, ast.expr]) -> bool | None:
    op, right = test.ops[0], test.comparators[0]
    known, value = _constant(test.left, given)
    other_known, other = _constant(right, given)
    if other_known and other is None and isinstance(op, (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)):
        name = test.left.id if isinstance(test.left, ast.Name) else ""
        if not known and name not in given:
            return None
        if not known and not _is_made(given.get(name)):
            return None
        return (value is None if known else False) == isinstance(op, (ast.Is, ast.Eq))
    if not known or not other_known:
        return None
    if isinstance(op, (ast.Eq, ast.Is)):
        return bool(value == other)
    return bool(value != other) if isinstance(op, (ast.NotEq, ast.IsNot)) else None


def _constant(node: ast.expr, given: Mapping[str, ast.expr]) -> tuple[bool, object]:
    if isinstance(node, ast.Name):
        held = given.get(node.id)
        return (True, held.value) if isinstance(held, ast.Constant) else (False, None)
    return (True, node.value) if isinstance(node, ast.Constant) else (False, None)
