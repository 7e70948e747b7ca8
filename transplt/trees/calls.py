"""Calls, by places: arguments that come or get another name or value; another function that is called."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from transplt.base.text.source import Source
from transplt.trees.positions import (
    LAYOUT,
    Argument,
    Change,
    arguments,
    behind_brackets,
    callee_of,
    expected_call,
    expected_method,
    in_expression,
    inside_call,
    name_at_end,
)
from transplt.trees.transform import CannotRewrite, New, OfText, rewritten

#: Comments of a layout, which belong to the argument before it; the last line end stays.
_COMMENTS = re.compile(r"(?:[ \t\f]*#[^\r\n]*(\r\n|\r|\n))+")

#: A comma with the rest of its line, and one with a comment there.
_REST = rb",(?:[ \t\f]|\\\r?\n)*"
_LINE = re.compile(LAYOUT + _REST + rb"(?:#[^\r\n]*)?(?:\r\n|\r|\n)")
_COMMENTED = re.compile(LAYOUT + _REST + rb"#[^\r\n]*(?:\r\n|\r|\n)")


def with_keyword(name: str, value: str) -> OfText:
    """Add a keyword argument behind the others (before `**kwargs`), in the layout of the last one."""

    def changes(source: Source, node: ast.expr) -> list[Change]:
        call = expected_call(node)
        given, new = arguments(source, call), f"{name}={value}"
        if not given:
            at = inside_call(source, call)
            return [((at, at), new)]
        more = next((each for each in given if each.star == "**"), None)
        if more is not None:
            return [((more.start, more.start), f"{new}, ")]
        comma = _COMMENTS.sub(r"\1", source.slice(given[0].end, given[1].start)) if len(given) > 1 else ", "
        return [((given[-1].end, given[-1].end), f"{comma}{new}")]

    return in_expression(changes)


def with_new_keyword(name: str, value: str, column: int | None) -> OfText:
    """As `with_keyword`, on a line of its own at a column where one is given; nothing where the call has the argument.
    """
    add = with_keyword(name, value)

    def changes(source: Source, node: ast.expr) -> list[Change] | str:
        call = expected_call(node)
        given = arguments(source, call)
        if any(each.keyword == name for each in given):
            return []
        at = next((index for index, each in enumerate(given) if each.star == "**"), len(given))
        if not at:
            return add.write(source.slice(*source.extent(call)))
        between = " " if column is None else source.newline() + " " * column
        end = given[at].start if at < len(given) else given[at - 1].end
        return [((given[at - 1].end, end), f",{between}{name}={value}{', ' if at < len(given) else ''}")]

    return in_expression(changes)


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


def with_named(index: int, name: str) -> OfText:
    """Give the positional argument at a place its name."""

    def changes(source: Source, node: ast.expr) -> list[Change]:
        given = arguments(source, expected_call(node))[: index + 1]
        if len(given) <= index or given[index].keyword is not None or any(each.star for each in given):
            raise CannotRewrite("the argument is not where it is expected")
        return [((given[index].start, given[index].start), f"{name}=")]

    return in_expression(changes)


def renamed_arguments(keywords: Mapping[str, str], positional: Mapping[int, str]) -> OfText:
    """Give keywords other names, and positional arguments at some places a name."""

    def changes(source: Source, node: ast.expr) -> list[Change]:
        found = []
        for index, each in enumerate(arguments(source, expected_call(node))):
            if each.keyword is not None and each.keyword in keywords:
                found.append((each.name, keywords[each.keyword]))
            elif each.keyword is None and not each.star and index in positional:
                found.append(((each.start, each.start), f"{positional[index]}="))
        return found

    return in_expression(changes)


def keyword_replaced(old: str, name: str, value: str) -> OfText:
    """Give a keyword argument another name and value where it stands."""

    def changes(source: Source, node: ast.expr) -> list[Change]:
        for each in arguments(source, expected_call(node)):
            if each.keyword == old:
                return [(each.name, name), ((each.value, each.end), value)]
        raise CannotRewrite(f"the call has no argument {old}")

    return in_expression(changes)


def without_keyword(name: str) -> OfText:
    """Leave a keyword argument out; the last one has the comma, or none, that the last one had, and its own comment."""

    def changes(source: Source, node: ast.expr) -> list[Change]:
        call = expected_call(node)
        given = arguments(source, call)
        kept = [index for index, each in enumerate(given) if each.keyword != name]
        if len(kept) == len(given):
            return []
        closing = source.extent(call)[1] - 1
        if not kept:
            return [((given[0].start, closing), "")]
        gone = [index for index in range(kept[-1]) if index not in kept]
        found: list[Change] = [((given[index].start, given[index + 1].start), "") for index in gone]
        if kept[-1] + 1 < len(given):
            found.append((_behind_last(source, given[kept[-1]], given[kept[-1] + 1], given[-1], closing), ""))
        return found

    return in_expression(changes)


def _behind_last(source: Source, last: Argument, following: Argument, end: Argument, closing: int) -> tuple[int, int]:
    """What goes behind the argument that is the last one then, up to that which was, `end`; a comment of its own stays,
    and the end of its line is that of the comment.
    """
    own = _COMMENTED.match(source.utf8, last.end, following.start)
    if own is None:
        return last.end, end.end
    line = _LINE.match(source.utf8, end.end, closing)
    return (own.end(), line.end()) if line is not None else (following.start, closing)


def without_any_argument() -> OfText:
    """A call without its arguments."""

    def changes(source: Source, node: ast.expr) -> list[Change]:
        call = expected_call(node)
        return [((inside_call(source, call, layout=False), source.extent(call)[1] - 1), "")]

    return in_expression(changes)


def only_argument() -> OfText:
    """The first argument of a call in place of the call."""
    return in_expression(first_argument)


def first_argument(source: Source, node: ast.expr) -> str:
    """The text of the first argument of a call: CannotRewrite."""
    given = arguments(source, expected_call(node))
    if not given:
        raise CannotRewrite("the call has no argument")
    return source.slice(given[0].value, given[0].end)


def callee() -> OfText:
    """What is called, in place of the call."""
    return in_expression(lambda source, node: source.slice(*callee_of(source, expected_call(node))))


def calling(name: str) -> OfText:
    """Call another function with the same arguments."""
    return in_expression(lambda source, node: [(callee_of(source, expected_call(node)), name)])


def with_last_name(name: str) -> OfText:
    """`a.name(...)` in place of `a.b(...)`."""
    return in_expression(lambda source, node: [(name_at_end(source, expected_method(node)), name)])


def one_after_the_other(*steps: New) -> OfText:
    """Several edits of one expression as one."""
    return OfText(lambda text: rewritten(text, steps, ast.expr))


def followed_by(more: str, separator: str = ", ") -> OfText:
    """An argument, a parameter, or the value of a row of a display, with others behind it."""
    return OfText(lambda text: f"{text}{separator}{more}")


def _is_name(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)
