"""Expressions around an expression: a call, a method, a condition, a second comparison."""

from __future__ import annotations

from transplt.edits.trees.arguments import first_of, in_place_of, method_of
from transplt.edits.trees.lazy import cst
from transplt.edits.trees.transform import CannotRewrite, OfText, edit_of, expression


def between(before: str, after: str) -> OfText:
    """Put an expression between two texts, such as a name with a bracket and the bracket that closes it."""
    return OfText(lambda text: f"{before}{text}{after}")


def followed_by(more: str, separator: str = ", ") -> OfText:
    """An argument, a parameter, or the value of a row of a display, with others behind it."""
    return between("", f"{separator}{more}")


def method_called(name: str) -> OfText:
    """`x.name()` in place of `x`."""
    return between("", f".{name}()")


def only_if(condition: str, other: str = "None") -> OfText:
    """`x if condition else None` in place of `x`, or another value than None."""
    return between("", f" if {condition} else {other}")


@edit_of("Call")
def receiver(call: cst.Call) -> cst.BaseExpression:
    """`x` in place of `x.method(...)`."""
    return method_of(call).value


@edit_of("Call")
def calling_method_of(call: cst.Call, new: str) -> cst.Call:
    """`new.method(...)` in place of `x.method(...)`."""
    return call.with_changes(func=method_of(call).with_changes(value=expression(new)))


@edit_of("Call")
def handed_to(call: cst.Call, function: str) -> cst.Call:
    """`function(x)` in place of `x.method()`."""
    return cst.Call(expression(function), [cst.Arg(method_of(call).value)])


@edit_of("Call")
def scaled_by(call: cst.Call, scaler: str) -> cst.Call:
    """`scaler.scale(x).method(...)` in place of `x.method(...)`; brackets around x become those of the call."""
    method = method_of(call)
    loss = method.value
    scaled = cst.Call(expression(f"{scaler}.scale"), [cst.Arg(loss)])
    if loss.lpar:
        bare = loss.with_changes(lpar=loss.lpar[1:], rpar=loss.rpar[:-1])
        given = cst.Arg(bare, whitespace_after_arg=loss.rpar[-1].whitespace_before)
        scaled = scaled.with_changes(args=[given], whitespace_before_args=loss.lpar[0].whitespace_after)
    return call.with_changes(func=method.with_changes(value=scaled))


@edit_of("Call")
def wrapped_anew(call: cst.Call, function: str, tail: str, more: str, *, behind: bool) -> cst.Call:
    """`function(x, more)` in place of `f(x, ...)`, or with `behind` in place of `f(x, ...).g()`; `tail` follows x."""
    wrapped = first_of(method_of(call).value if behind else call)
    if tail:
        simple = isinstance(wrapped, (cst.Name, cst.Attribute, cst.Call, cst.Subscript))
        code = cst.Module([]).code_for_node(wrapped)
        wrapped = expression(f"{code}{tail}" if simple else f"({code}){tail}")
    new = cst.ensure_type(expression(f"{function}(_, {more})" if more else f"{function}(_)"), cst.Call)
    return in_place_of(new, 0, new.args[0].with_changes(value=wrapped))


@edit_of("Attribute", otherwise="not a name in a module")
def module_named(outer: cst.Attribute, name: str) -> cst.Attribute:
    """`a.name.c` in place of `a.b.c`."""
    if not isinstance(outer.value, cst.Attribute):
        raise CannotRewrite("not a name in a module")
    return outer.with_changes(value=outer.value.with_changes(attr=cst.Name(name)))


@edit_of("Comparison", otherwise="no comparison")
def compared_with(found: cst.Comparison, new: str, operator: str, *, brackets: bool) -> cst.BooleanOperation:
    """`a in x or new in x` in place of `a in x`, with another operator where one is given."""
    bare = found.with_changes(lpar=(), rpar=())
    both = cst.ensure_type(expression(f"_ {operator} _"), cst.BooleanOperation)
    lpar, rpar = ([cst.LeftParen()], [cst.RightParen()]) if brackets or found.lpar else ([], [])
    return both.with_changes(left=bare, right=bare.with_changes(left=expression(new)), lpar=lpar, rpar=rpar)


@edit_of("Comparison", otherwise="no comparison")
def left_side(found: cst.Comparison, tail: str) -> cst.BaseExpression:
    """What a comparison compares, with another comparison behind it."""
    return expression(f"_{tail}").with_changes(left=found.left)


@edit_of()
def and_also(node: cst.BaseExpression, condition: str) -> cst.BooleanOperation:
    """`x and condition` in place of `x`."""
    loose = isinstance(node, (cst.IfExp, cst.Lambda, cst.NamedExpr)) or (
        isinstance(node, cst.BooleanOperation) and isinstance(node.operator, cst.Or)
    )
    if loose and not node.lpar:
        node = node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return cst.BooleanOperation(node, cst.And(), expression(condition))
