"""Expressions around an expression: a call, a method, a condition, a second comparison."""

from __future__ import annotations

from transplt.trees.calls import comma
from transplt.trees.lazy import cst
from transplt.trees.transform import Transform, code


def between(before: str, after: str) -> Transform:
    """Put an expression between two texts, such as a name with a bracket and the bracket that closes it."""
    return lambda node: f"{before}{code(node)}{after}"


def receiver(node: cst.CSTNode) -> cst.CSTNode:
    """`x` in place of `x.method(...)`."""
    return _method(node).value


def calling_method_of(new: str) -> Transform:
    """`new.method(...)` in place of `x.method(...)`."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        method = _method(node).with_changes(value=cst.parse_expression(new))
        return cst.ensure_type(node, cst.Call).with_changes(func=method)

    return transform


def method_called(name: str) -> Transform:
    """`x.name()` in place of `x`."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        assert isinstance(node, cst.BaseExpression)
        return cst.Call(cst.Attribute(node, cst.Name(name)))

    return transform


def handed_to(function: str) -> Transform:
    """`function(x)` in place of `x.method()`."""
    return lambda node: f"{function}({code(receiver(node))})"


def scaled_by(scaler: str) -> Transform:
    """`scaler.scale(x).method(...)` in place of `x.method(...)`; brackets around x become those of the call."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        method = _method(node)
        loss = method.value
        scaled = cst.Call(cst.parse_expression(f"{scaler}.scale"), [cst.Arg(loss)])
        if loss.lpar:
            bare = loss.with_changes(lpar=loss.lpar[1:], rpar=loss.rpar[:-1])
            given = cst.Arg(bare, whitespace_after_arg=loss.rpar[-1].whitespace_before)
            scaled = scaled.with_changes(args=[given], whitespace_before_args=loss.lpar[0].whitespace_after)
        return cst.ensure_type(node, cst.Call).with_changes(func=method.with_changes(value=scaled))

    return transform


def wrapped_anew(function: str, more: str, *, behind: bool) -> Transform:
    """`function(x, more)` in place of `f(x, ...)`, or with `behind` in place of `f(x, ...).g()`."""

    def transform(node: cst.CSTNode) -> str:
        wrapper = cst.ensure_type(receiver(node) if behind else node, cst.Call)
        wrapped = wrapper.args[0].value
        return f"{function}({code(wrapped)}{f', {more}' if more else ''})"

    return transform


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


def module_named(name: str) -> Transform:
    """`a.name.c` in place of `a.b.c`."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        outer = cst.ensure_type(node, cst.Attribute)
        inner = cst.ensure_type(outer.value, cst.Attribute)
        return outer.with_changes(value=inner.with_changes(attr=cst.Name(name)))

    return transform


def compared_with(new: str, operator: str, *, brackets: bool) -> Transform:
    """`a in x or new in x` in place of `a in x`, with another operator where one is given."""

    def transform(node: cst.CSTNode) -> str:
        found = cst.ensure_type(node, cst.Comparison)
        second = found.with_changes(left=cst.parse_expression(new), lpar=(), rpar=())
        text = f"{code(found.with_changes(lpar=(), rpar=()))} {operator} {code(second)}"
        return f"({text})" if brackets or found.lpar else text

    return transform


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


def left_side(tail: str) -> Transform:
    """What a comparison compares, with another comparison behind it."""
    return lambda node: code(cst.ensure_type(node, cst.Comparison).left) + tail


def and_also(condition: str) -> Transform:
    """`x and condition` in place of `x`."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        loose = isinstance(node, (cst.IfExp, cst.Lambda, cst.NamedExpr)) or (
            isinstance(node, cst.BooleanOperation) and isinstance(node.operator, cst.Or)
        )
        text = code(node)
        bare = not getattr(node, "lpar", ())
        return cst.parse_expression(f"({text}) and {condition}" if loose and bare else f"{text} and {condition}")

    return transform


def only_if(condition: str, other: str = "None") -> Transform:
    """`x if condition else None` in place of `x`, or another value than None."""
    return lambda node: cst.parse_expression(f"{code(node)} if {condition} else {other}")


def _method(node: cst.CSTNode) -> cst.Attribute:
    """`x.method` of `x.method(...)`; where it is longer than an operand may be, it is a hole and has no x."""
    assert isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute)
    return node.func
