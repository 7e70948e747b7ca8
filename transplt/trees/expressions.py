"""Expressions around an expression: a call, a method, a condition, a second comparison."""

from __future__ import annotations

import ast

from transplt.base.text.source import Source
from transplt.trees.calls import comma, first_argument
from transplt.trees.lazy import cst
from transplt.trees.positions import Change, behind_brackets, expected_method, in_expression, name_at_end
from transplt.trees.transform import CannotRewrite, OfText, Transform, code


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


def operands_given_to(name: str, function: str) -> Transform:
    """`name(function, a, b)` in place of `a @ b` or another operation of two."""

    def transform(node: cst.CSTNode) -> str:
        operation = cst.ensure_type(node, cst.BinaryOperation)
        return f"{name}({function}, {code(operation.left)}, {code(operation.right)})"

    return transform


def indexed_by_parts(torch: str) -> Transform:
    """`torch.view_as_complex(torch.view_as_real(x)[i])` in place of `x[i]`; behind an ellipsis the parts are named."""

    def transform(node: cst.CSTNode) -> str:
        found = cst.ensure_type(node, cst.Subscript).with_changes(lpar=(), rpar=())
        real = found.with_changes(value=cst.parse_expression(f"{torch}.view_as_real({code(found.value)})"))
        places = [each.slice for each in found.slice]
        if any(isinstance(each, cst.Index) and isinstance(each.value, cst.Ellipsis) for each in places):
            last = cst.SubscriptElement(cst.Slice(None, None))
            spaced = [each.with_changes(comma=comma()) for each in found.slice]
            real = real.with_changes(slice=[*spaced, last])
        return f"{torch}.view_as_complex({code(real)})"

    return transform


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


def as_instance(*, negated: bool) -> Transform:
    """`isinstance(x, C)` in place of `type(x) is C` and `type(x) in (C, D)`, with `not` before it where asked."""

    def transform(node: cst.CSTNode) -> str:
        found = cst.ensure_type(node, cst.Comparison)
        what = code(cst.ensure_type(found.left, cst.Call).args[0].value)
        kind = found.comparisons[0].comparator
        text = code(kind)
        if isinstance(kind, (cst.List, cst.Set)):
            every = [code(each.value) for each in kind.elements]
            text = f"({', '.join(every)}{',' * (len(every) == 1)})"
        return f"{'not ' * negated}isinstance({what}, {text})"

    return transform


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
