"""Small edits of a call that several codemods share: an argument more, a keyword that gets another name."""

from __future__ import annotations

import ast

from transplt.codemods.arguments import shape, without_argument
from transplt.trees.lazy import cst
from transplt.trees.transform import CannotRewrite, TreeTransform


def with_keyword(name: str, value: str) -> TreeTransform:
    """Add a keyword argument behind the others (before `**kwargs`), in the layout of the last one."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        call = cst.ensure_type(node, cst.Call)
        new = cst.Arg(cst.parse_expression(value), keyword=cst.Name(name), equal=tight())
        at = next((i for i, arg in enumerate(call.args) if arg.star == "**"), len(call.args))
        args = list(call.args)
        if at < len(args):
            args.insert(at, new.with_changes(comma=_comma()))
        elif args:
            last = args[-1]
            between = next((a.comma for a in args[:-1] if isinstance(a.comma, cst.Comma)), _comma())
            new = new.with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
            args[-1:] = [last.with_changes(comma=between, whitespace_after_arg=cst.SimpleWhitespace("")), new]
        else:
            args = [new]
        return call.with_changes(args=args)

    return transform


def with_named(index: int, name: str) -> TreeTransform:
    """Give the positional argument at a place its name."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        call = cst.ensure_type(node, cst.Call)
        arg = call.args[index]
        if arg.keyword is not None or any(before.star for before in call.args[: index + 1]):
            raise CannotRewrite("the argument is not where it is expected")
        named = arg.with_changes(keyword=cst.Name(name), equal=tight())
        return call.with_changes(args=[*call.args[:index], named, *call.args[index + 1 :]])

    return transform


def keyword_replaced(old: str, name: str, value: str) -> TreeTransform:
    """Give a keyword argument another name and value where it stands."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        call = cst.ensure_type(node, cst.Call)
        for index, arg in enumerate(call.args):
            if arg.keyword is not None and arg.keyword.value == old:
                new = arg.with_changes(keyword=cst.Name(name), value=cst.parse_expression(value))
                return call.with_changes(args=[*call.args[:index], new, *call.args[index + 1 :]])
        raise CannotRewrite(f"the call has no argument {old}")

    return transform


def without_keywords(*names: str) -> TreeTransform:
    """Leave keyword arguments out."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        call = cst.ensure_type(node, cst.Call)
        for name in names:
            at = next((i for i, arg in enumerate(call.args) if arg.keyword and arg.keyword.value == name), None)
            if at is None:
                raise CannotRewrite(f"the call has no argument {name}")
            call = without_argument(call, at)
        return call

    return transform


def keyword_of(call: ast.Call, name: str) -> ast.expr | None:
    """The value of a keyword argument."""
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)


def lacks(call: ast.Call, name: str, index: int) -> bool | None:
    """True when a call gives no argument `name` (position `index`); None when a star may bring it."""
    positional, keywords, starred = shape(call)
    if positional > index or name in keywords:
        return False
    return None if starred else True


def tight() -> cst.AssignEqual:
    """`=` without spaces around it."""
    return cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))


def _comma() -> cst.Comma:
    return cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
