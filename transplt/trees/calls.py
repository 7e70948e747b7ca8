"""Calls: arguments that come, move or get another name or value; another function that is called."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from transplt.base.text.source import Source
from transplt.trees.lazy import cst
from transplt.trees.positions import Change, behind_brackets, in_expression, inside_call
from transplt.trees.transform import CannotRewrite, OfText, Transform, code


def with_keyword(name: str, value: str) -> Transform:
    """Add a keyword argument behind the others (before `**kwargs`), in the layout of the last one."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        call = cst.ensure_type(node, cst.Call)
        new = cst.Arg(cst.parse_expression(value), keyword=cst.Name(name), equal=tight())
        at = next((i for i, arg in enumerate(call.args) if arg.star == "**"), len(call.args))
        args = list(call.args)
        if at < len(args):
            args.insert(at, new.with_changes(comma=comma()))
        elif args:
            args[-1:] = behind(args, new)
        else:
            args = [new]
        return call.with_changes(args=args)

    return transform


def with_new_keyword(name: str, value: str, column: int | None) -> Transform:
    """As `with_keyword`, on a line of its own at a column where one is given; nothing where the call has the argument.
    """
    add = with_keyword(name, value)

    def transform(node: cst.CSTNode) -> cst.CSTNode | str:
        if not isinstance(node, cst.Call) or any(arg.keyword and arg.keyword.value == name for arg in node.args):
            return node
        call = cst.ensure_type(add(node), cst.Call)
        at = next(index for index, arg in enumerate(call.args) if arg.keyword and arg.keyword.value == name)
        if not at:
            return call
        between: cst.BaseParenthesizableWhitespace = cst.SimpleWhitespace(" ")
        if column is not None:
            between = cst.ParenthesizedWhitespace(last_line=cst.SimpleWhitespace(" " * column))
        before = call.args[at - 1].with_changes(comma=cst.Comma(whitespace_after=between))
        return call.with_changes(args=[*call.args[: at - 1], before, *call.args[at:]])

    return transform


def with_first(value: str) -> OfText:
    """Put a positional argument in front of all others of the call of a name."""

    def changes(source: Source, node: ast.expr) -> list[Change]:
        if not isinstance(node, ast.Call) or not _is_name(node.func):
            raise CannotRewrite("not a call by name")
        at = inside_call(source, node)
        return [((at, at), f"{value}, " if node.args or node.keywords else value)]

    return in_expression(changes)


def with_twin(text: str, twin: str) -> OfText:
    """Put a second literal behind the argument that is the first one, such as another spelling of a flag."""

    def changes(source: Source, node: ast.expr) -> list[Change]:
        for argument in node.args if isinstance(node, ast.Call) else ():
            literal = source.slice(*source.extent(argument))
            if isinstance(argument, ast.Constant) and literal in (f"'{text}'", f'"{text}"'):
                at = behind_brackets(source, argument, source.extent(node)[1] - 1)
                return [((at, at), f", {literal[0]}{twin}{literal[0]}")]
        raise CannotRewrite(f"{text} is not a plain string")

    return in_expression(changes)


def with_named(index: int, name: str) -> Transform:
    """Give the positional argument at a place its name."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        call = cst.ensure_type(node, cst.Call)
        arg = call.args[index]
        if arg.keyword is not None or any(before.star for before in call.args[: index + 1]):
            raise CannotRewrite("the argument is not where it is expected")
        named = arg.with_changes(keyword=cst.Name(name), equal=tight())
        return call.with_changes(args=[*call.args[:index], named, *call.args[index + 1 :]])

    return transform


def renamed_arguments(keywords: Mapping[str, str], positional: Mapping[int, str]) -> Transform:
    """Give keywords other names, and positional arguments at some places a name."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        call = cst.ensure_type(node, cst.Call)
        args = []
        for index, arg in enumerate(call.args):
            if arg.keyword is not None and arg.keyword.value in keywords:
                arg = arg.with_changes(keyword=arg.keyword.with_changes(value=keywords[arg.keyword.value]))
            elif arg.keyword is None and not arg.star and index in positional:
                arg = arg.with_changes(keyword=cst.Name(positional[index]), equal=tight())
            args.append(arg)
        return call.with_changes(args=args)

    return transform


def keyword_replaced(old: str, name: str, value: str) -> Transform:
    """Give a keyword argument another name and value where it stands."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        call = cst.ensure_type(node, cst.Call)
        for index, arg in enumerate(call.args):
            if arg.keyword is not None and arg.keyword.value == old:
                new = arg.with_changes(keyword=cst.Name(name), value=cst.parse_expression(value))
                return call.with_changes(args=[*call.args[:index], new, *call.args[index + 1 :]])
        raise CannotRewrite(f"the call has no argument {old}")

    return transform


def without_keyword(name: str) -> Transform:
    """Leave a keyword argument out; the last one has the comma, or none, that the last one had."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        call = cst.ensure_type(node, cst.Call)
        kept = [arg for arg in call.args if arg.keyword is None or arg.keyword.value != name]
        if kept and kept[-1] is not call.args[-1]:
            kept[-1] = kept[-1].with_changes(
                comma=call.args[-1].comma, whitespace_after_arg=call.args[-1].whitespace_after_arg
            )
        return call.with_changes(args=kept)

    return transform


def without_any_argument(node: cst.CSTNode) -> cst.CSTNode:
    """A call without its arguments."""
    return cst.ensure_type(node, cst.Call).with_changes(args=[], whitespace_before_args=cst.SimpleWhitespace(""))


def without_first(node: cst.CSTNode) -> cst.CSTNode:
    """A call without its first argument, whose layout goes with it."""
    call = cst.ensure_type(node, cst.Call)
    return call.with_changes(args=call.args[1:])


def without_last(node: cst.CSTNode) -> cst.CSTNode:
    """A call without its last argument, and without a comma behind the one that is last then."""
    call = cst.ensure_type(node, cst.Call)
    last = call.args[-2].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return call.with_changes(args=[*call.args[:-2], last])


def only_argument(node: cst.CSTNode) -> cst.CSTNode:
    """The first argument of a call in place of the call."""
    return cst.ensure_type(node, cst.Call).args[0].value


def callee(node: cst.CSTNode) -> cst.CSTNode:
    """What is called, in place of the call."""
    return cst.ensure_type(node, cst.Call).func


def partial_of(partial: str) -> Transform:
    """`functools.partial` of what is called, with all arguments but the first."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        call = cst.ensure_type(node, cst.Call)
        function = call.args[0].with_changes(value=call.func)
        return call.with_changes(func=cst.parse_expression(partial), args=[function, *call.args[1:]])

    return transform


def called_through(function: str) -> Transform:
    """`function(a.b, ...)` in place of `a.b(...)`, in the layout of the call."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        call = cst.ensure_type(node, cst.Call)
        first = cst.Arg(call.func)
        if call.args:
            before = call.whitespace_before_args
            lines = isinstance(before, cst.ParenthesizedWhitespace)
            first = first.with_changes(comma=cst.Comma(whitespace_after=before) if lines else comma())
        return call.with_changes(func=cst.parse_expression(function), args=[first, *call.args])

    return transform


def calling(name: str) -> Transform:
    """Call another function with the same arguments."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        return cst.ensure_type(node, cst.Call).with_changes(func=cst.parse_expression(name))

    return transform


def calling_with(name: str, function: str, *, method: bool) -> Transform:
    """`name(function, ...)` in place of `function(...)`; of a method the object is the argument behind the function."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        call = cst.ensure_type(node, cst.Call)
        first = [cst.Arg(cst.parse_expression(function))]
        if method:
            if not isinstance(call.func, cst.Attribute):
                raise CannotRewrite("the object of the method is not seen")
            first.append(cst.Arg(call.func.value))
        given = [each.with_changes(comma=comma()) if call.args or each is not first[-1] else each for each in first]
        return call.with_changes(func=cst.parse_expression(name), args=[*given, *call.args])

    return transform


def with_last_name(name: str) -> Transform:
    """`a.name(...)` in place of `a.b(...)`."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        call = cst.ensure_type(node, cst.Call)
        method = cst.ensure_type(call.func, cst.Attribute)
        return call.with_changes(func=method.with_changes(attr=method.attr.with_changes(value=name)))

    return transform


def one_after_the_other(*steps: Transform) -> Transform:
    """Several transforms of one tree as one."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        for step in steps:
            changed = step(node)
            if isinstance(changed, str):
                raise CannotRewrite("a text in the place of a tree")
            node = changed
        return node

    return transform


def followed_by(arguments: str) -> Transform:
    """An argument, with others behind it."""

    def transform(node: cst.CSTNode) -> str:
        assert isinstance(node, cst.BaseExpression)
        more = cst.ensure_type(cst.parse_expression(f"_({arguments})"), cst.Call).args
        return "".join(code(each) for each in (cst.Arg(node, comma=comma()), *more))

    return transform


def parameter_behind(name: str) -> Transform:
    """A parameter, with a second one behind it."""

    def transform(node: cst.CSTNode) -> str:
        return code(cst.ensure_type(node, cst.Parameters)) + code(comma()) + name

    return transform


def behind(args: Sequence[cst.Arg], new: cst.Arg) -> list[cst.Arg]:
    """The last argument with a new one behind it, in its layout."""
    last = args[-1]
    between = next((arg.comma for arg in args[:-1] if isinstance(arg.comma, cst.Comma)), comma())
    new = new.with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
    return [last.with_changes(comma=between, whitespace_after_arg=cst.SimpleWhitespace("")), new]


def _is_name(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def tight() -> cst.AssignEqual:
    """`=` without spaces around it."""
    return cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))


def comma() -> cst.Comma:
    return cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
