"""Calls: arguments that come, or get another name or value; another function that is called."""

from __future__ import annotations

from collections.abc import Mapping

from transplt.edits.trees.arguments import (
    before_another,
    comma,
    first_of,
    in_place_of,
    keyword_of,
    method_of,
    place_of,
    stands_at,
    tight,
    without_comments,
)
from transplt.edits.trees.lazy import cst
from transplt.edits.trees.transform import CannotRewrite, Transform, edit_of, expression


@edit_of("Call")
def with_keyword(call: cst.Call, name: str, value: str) -> cst.Call:
    """Add a keyword argument behind the others (before `**kwargs`), in the layout of the last one."""
    new = cst.Arg(expression(value), cst.Name(name), tight())
    at = next((index for index, arg in enumerate(call.args) if arg.star == "**"), len(call.args))
    if at < len(call.args):
        return call.with_changes(args=[*call.args[:at], new.with_changes(comma=comma()), *call.args[at:]])
    if not at:
        return call.with_changes(args=[new])
    last, between = call.args[-1], comma()
    if at > 1:
        first = cst.ensure_type(call.args[0].comma, cst.Comma)
        between = cst.Comma(without_comments(first.whitespace_before), without_comments(first.whitespace_after))
    new = new.with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
    return in_place_of(call, at - 1, before_another(last, between), new)


@edit_of("Call")
def with_new_keyword(call: cst.Call, name: str, value: str, column: int | None) -> cst.Call:
    """As `with_keyword`, on a line of its own at a column where one is given; nothing where the call has it."""
    if any(keyword_of(arg) == name for arg in call.args):
        return call
    new = cst.ensure_type(with_keyword(name, value)(call), cst.Call)
    at = place_of(new, name)
    if not at:
        return new
    space: cst.BaseParenthesizableWhitespace = cst.SimpleWhitespace(" ")
    if column is not None:
        space = cst.ParenthesizedWhitespace(last_line=cst.SimpleWhitespace(" " * column))
    return in_place_of(new, at - 1, new.args[at - 1].with_changes(comma=cst.Comma(whitespace_after=space)))


@edit_of("Call", otherwise="not a call by name")
def with_first(call: cst.Call, value: str) -> cst.Call:
    """Put a positional argument in front of all others of the call of a name."""
    called = call.func
    while isinstance(called, cst.Attribute):
        called = called.value
    if not isinstance(called, cst.Name):
        raise CannotRewrite("not a call by name")
    new = cst.Arg(expression(value), comma=comma() if call.args else cst.MaybeSentinel.DEFAULT)
    return call.with_changes(args=[new, *call.args])


@edit_of("Call")
def moved_to(call: cst.Call, name: str, *, with_argument: bool = False, made: bool = False) -> cst.Call:
    """`x.cuda()` -> `x.to(name)`; with an argument `x.cuda(i)` -> `x.to(name(i))`, also if a call has `made` that, or
    `x.to(i)` without a name. What else it had gets its name.
    """
    args = list(call.args)
    at = next((index for index, arg in enumerate(args) if keyword_of(arg) == "device"), 0) if with_argument else -1
    new = [
        arg if arg.keyword or index == at else arg.with_changes(keyword=cst.Name("non_blocking"), equal=tight())
        for index, arg in enumerate(args)
    ]
    if with_argument:
        given = args[at].value
        arguments = given.args if made and isinstance(given, cst.Call) else [cst.Arg(given)]
        where = cst.Call(expression(name), arguments) if name else given
        new[at] = args[at].with_changes(value=where, keyword=None, equal=cst.MaybeSentinel.DEFAULT)
    else:
        new.insert(0, cst.Arg(expression(name), comma=comma() if new else cst.MaybeSentinel.DEFAULT))
    func = method_of(call).with_changes(attr=cst.Name("to"))
    return call.with_changes(func=func, args=new)


@edit_of("Call")
def with_twin(call: cst.Call, text: str, twin: str) -> cst.Call:
    """Put a second literal behind the argument that is the first one, such as another spelling of a flag."""
    for at, arg in enumerate(call.args):
        literal = arg.value.value if isinstance(arg.value, cst.SimpleString) else ""
        if literal in (f"'{text}'", f'"{text}"') and not arg.keyword and not arg.star:
            new = arg.with_changes(value=cst.SimpleString(f"{literal[0]}{twin}{literal[0]}"))
            return in_place_of(call, at, before_another(arg, comma()), new)
    raise CannotRewrite(f"{text} is not a plain string")


@edit_of("Call")
def with_named(call: cst.Call, index: int, name: str) -> cst.Call:
    """Give the positional argument at a place its name."""
    if not stands_at(call, index):
        raise CannotRewrite("the argument is not at its expected position")
    return in_place_of(call, index, call.args[index].with_changes(keyword=cst.Name(name), equal=tight()))


@edit_of("Call")
def renamed_arguments(call: cst.Call, keywords: Mapping[str, str], positional: Mapping[int, str]) -> cst.Call:
    """Give keywords other names, and positional arguments at some places a name."""
    args = []
    for index, arg in enumerate(call.args):
        name = keyword_of(arg)
        if name is not None and name in keywords:
            arg = arg.with_changes(keyword=cst.Name(keywords[name]))
        elif name is None and not arg.star and index in positional:
            arg = arg.with_changes(keyword=cst.Name(positional[index]), equal=tight())
        args.append(arg)
    return call.with_changes(args=args)


@edit_of("Call")
def keyword_replaced(call: cst.Call, old: str, name: str, value: str) -> cst.Call:
    """Give a keyword argument another name and value where it stands."""
    at = place_of(call, old)
    return in_place_of(call, at, call.args[at].with_changes(keyword=cst.Name(name), value=expression(value)))


@edit_of("Call")
def only_argument(call: cst.Call) -> cst.BaseExpression:
    """The first argument of a call in place of the call."""
    return first_of(call)


@edit_of("Call")
def callee(call: cst.Call) -> cst.BaseExpression:
    """What is called, in place of the call."""
    return call.func


@edit_of("Call")
def calling(call: cst.Call, name: str) -> cst.Call:
    """Call another function with the same arguments."""
    return call.with_changes(func=expression(name))


@edit_of("Call")
def with_last_name(call: cst.Call, name: str) -> cst.Call:
    """`a.name(...)` in place of `a.b(...)`."""
    return call.with_changes(func=method_of(call).with_changes(attr=cst.Name(name)))


def one_after_the_other(*steps: Transform) -> Transform:
    """Several edits of one expression as one."""

    def transform(node: cst.CSTNode) -> cst.CSTNode | str:
        current: cst.CSTNode | str = node
        for step in steps:
            current = step(expression(current) if isinstance(current, str) else current)
        return current

    return transform
