"""What a condition comes to with what a call gives its function."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from transplt.program.program import Function
from transplt.syntax.nodes import defaults_of, last_name


def defaults(function: Function) -> Iterator[tuple[str, ast.expr]]:
    """The parameters that have a default, each with it."""
    for argument, value in defaults_of(function.args):
        yield argument.arg, value


def value_of(test: ast.expr, given: Mapping[str, ast.expr]) -> bool | None:
    """What a condition comes to with the arguments of a call; None where that cannot be seen."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = value_of(operand, given)
            return None if inner is None else not inner
        case ast.BoolOp():
            values = [value_of(each, given) for each in test.values]
            decides = isinstance(test.op, ast.Or)
            if decides in values:
                return decides
            return None if None in values else not decides
        case ast.Compare(left=left, ops=[ast.Is() | ast.Eq()], comparators=[right]):
            return _are_equal(_argument(left, given), _argument(right, given))
        case ast.Compare(left=left, ops=[ast.IsNot() | ast.NotEq()], comparators=[right]):
            equal = _are_equal(_argument(left, given), _argument(right, given))
            return None if equal is None else not equal
        case ast.Compare(left=left, ops=[ast.In()], comparators=[ast.Tuple(elts=items) | ast.List(elts=items)]):
            found = [_are_equal(_argument(left, given), _argument(each, given)) for each in items]
            return True if True in found else None if None in found else False
    match _argument(test, given):
        case ast.Constant(value=value):
            return bool(value)
        case made if _is_made(made):
            return True
    return None


def _argument(node: ast.expr, given: Mapping[str, ast.expr]) -> ast.expr | None:
    """What a name is given, or a constant that is written out; None for anything else."""
    if isinstance(node, ast.Constant):
        return node
    return given.get(node.id) if isinstance(node, ast.Name) else None


def _is_made(node: ast.expr | None) -> bool:
    """True for a call of a class, by its name: an optimizer, a scaler."""
    return isinstance(node, ast.Call) and last_name(node.func)[:1].isupper()


def _are_equal(left: ast.expr | None, right: ast.expr | None) -> bool | None:
    match left, right:
        case ast.Constant(), ast.Constant():
            return bool(left.value == right.value)
        case _, ast.Constant(value=None) if _is_made(left):
            return False
    return None
