"""Expressions around an expression, by places: a call, a method, a condition, a second comparison."""

from __future__ import annotations

import ast

from transplt.base.text.source import Source
from transplt.trees.calls import first_argument
from transplt.trees.positions import Change, behind_brackets, expected_method, in_expression, name_at_end
from transplt.trees.transform import CannotRewrite, OfText


def between(before: str, after: str) -> OfText:
    """Put an expression between two texts, such as a name with a bracket and the bracket that closes it."""
    return OfText(lambda text: f"{before}{text}{after}")


def receiver() -> OfText:
    """`x` in place of `x.method(...)`."""
    return in_expression(lambda source, node: source.slice(*_receiver(source, node)))


def calling_method_of(new: str) -> OfText:
    """`new.method(...)` in place of `x.method(...)`."""
    return in_expression(lambda source, node: [(_receiver(source, node), new)])


def method_called(name: str) -> OfText:
    """`x.name()` in place of `x`."""
    return between("", f".{name}()")


def handed_to(function: str) -> OfText:
    """`function(x)` in place of `x.method()`."""
    return in_expression(lambda source, node: f"{function}({source.slice(*_receiver(source, node))})")


def scaled_by(scaler: str) -> OfText:
    """`scaler.scale(x).method(...)` in place of `x.method(...)`; brackets around x become those of the call."""

    def changes(source: Source, node: ast.expr) -> list[Change]:
        start, end = _receiver(source, node)
        if source.extent(expected_method(node).value)[0] > start:
            return [((start, start), f"{scaler}.scale")]
        return [((start, start), f"{scaler}.scale("), ((end, end), ")")]

    return in_expression(changes)


def wrapped_anew(function: str, more: str, *, behind: bool) -> OfText:
    """`function(x, more)` in place of `f(x, ...)`, or with `behind` in place of `f(x, ...).g()`."""

    def changes(source: Source, node: ast.expr) -> str:
        wrapped = first_argument(source, expected_method(node).value if behind else node)
        return f"{function}({wrapped}{f', {more}' if more else ''})"

    return in_expression(changes)


def module_named(name: str) -> OfText:
    """`a.name.c` in place of `a.b.c`."""

    def changes(source: Source, node: ast.expr) -> list[Change]:
        if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Attribute):
            raise CannotRewrite("no module of a module")
        return [(name_at_end(source, node.value), name)]

    return in_expression(changes)


def compared_with(new: str, operator: str, *, brackets: bool) -> OfText:
    """`a in x or new in x` in place of `a in x`, with another operator where one is given."""

    def changes(source: Source, node: ast.expr) -> str:
        start, end = source.extent(node)
        behind = source.slice(_left(source, node)[1], end)
        text = f"{source.slice(start, end)} {operator} {new}{behind}"
        return f"({text})" if brackets or start > 1 else text

    return in_expression(changes)


def left_side(tail: str) -> OfText:
    """What a comparison compares, with another comparison behind it."""
    return in_expression(lambda source, node: source.slice(*_left(source, node)) + tail)


def and_also(condition: str) -> OfText:
    """`x and condition` in place of `x`."""

    def changes(source: Source, node: ast.expr) -> list[Change]:
        loose = isinstance(node, (ast.IfExp, ast.Lambda, ast.NamedExpr)) or (
            isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or)
        )
        start, end = source.extent(node)
        if loose and start == 1:
            return [((start, start), "("), ((end, end), f") and {condition}")]
        end = behind_brackets(source, node, len(source.utf8) - 2)
        return [((end, end), f" and {condition}")]

    return in_expression(changes)


def only_if(condition: str, other: str = "None") -> OfText:
    """`x if condition else None` in place of `x`, or another value than None."""
    return between("", f" if {condition} else {other}")


def _receiver(source: Source, node: ast.expr) -> tuple[int, int]:
    """The place of x in `x.method(...)`, with brackets around it."""
    start, end = source.extent(node)
    return start, behind_brackets(source, expected_method(node).value, end)


def _left(source: Source, node: ast.expr) -> tuple[int, int]:
    """The place of the left side of a comparison, with brackets around it."""
    if not isinstance(node, ast.Compare):
        raise CannotRewrite("no comparison")
    start, end = source.extent(node)
    return start, behind_brackets(source, node.left, end)
