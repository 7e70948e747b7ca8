"""Edits by places: `ast` says where what changes stands, and all else stays as it is written.

That needs no tree of LibCST, whose import costs more than a whole check of a small file. `ast` says where nodes begin
and end; brackets around them, commas, and layout between the parts of a name are read from there on.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from transplt.base.text.source import Source, splice
from transplt.trees.transform import CannotRewrite, OfText

#: A byte range of a source, and what stands there then.
Change = tuple[tuple[int, int], str]
#: Spaces, line ends and comments between two tokens.
LAYOUT = rb"(?:\\?[\r\n]|[ \t\f]|#[^\r\n]*[\r\n])*"
#: A name as it is spelled, and such names with dots between.
NAME = rb"[A-Za-z0-9_\x80-\xff]+"
DOTTED = NAME + rb"(?:" + LAYOUT + rb"\." + LAYOUT + NAME + rb")*"
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_" + bytes(range(0x80, 0x100))
_OPENS = re.compile(LAYOUT + rb"(\()" + LAYOUT)
_COMMA = re.compile(LAYOUT + rb"," + LAYOUT)
_KEYWORD = re.compile(rb"(" + NAME + rb")" + LAYOUT + rb"=" + LAYOUT)
_STAR = re.compile(rb"(\*\*?)" + LAYOUT)
_CLOSED = re.compile(rb"(?:" + LAYOUT + rb"\))*")


def in_expression(changes: Callable[[Source, ast.expr], Sequence[Change] | str]) -> OfText:
    """An edit of an expression by places in its text, sorted; or by a text for all of it.

    It is read in brackets, as it may go over several lines.
    """

    def write(text: str) -> str:
        source = Source(f"({text}\n)".encode())
        try:
            node = ast.parse(source.text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise CannotRewrite(f"no expression: {error}") from None
        found = changes(source, node)
        return found if isinstance(found, str) else _spliced(source, found)[1:-2]

    return OfText(write)


def in_import(changes: Callable[[Source, ast.Import | ast.ImportFrom], Sequence[Change]]) -> OfText:
    """An edit of an import statement by places in its text, sorted."""

    def write(text: str) -> str:
        source = Source(text.encode())
        try:
            body = ast.parse(text).body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise CannotRewrite(f"no statement: {error}") from None
        if len(body) != 1 or not isinstance(body[0], (ast.Import, ast.ImportFrom)):
            raise CannotRewrite("not the import statement that was expected")
        return _spliced(source, changes(source, body[0]))

    return OfText(write)


def name_at_end(source: Source, node: ast.Name | ast.Attribute) -> tuple[int, int]:
    """The place of the name with which a dotted name ends, as it is spelled: `ast` has `\ufb01` as `fi`."""
    start, end = source.extent(node)
    return start + len(source.utf8[start:end].rstrip(_LETTERS)), end


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a call, in source order: `start`..`end` with its name, its star and its brackets."""

    keyword: str | None
    name: tuple[int, int]  # the place of the keyword as it is spelled
    star: str
    start: int
    value: int  # where the value begins
    end: int


def arguments(source: Source, call: ast.Call) -> list[Argument]:
    """The arguments of a call with their places."""
    utf8, closing = source.utf8, source.extent(call)[1] - 1
    found: list[Argument] = []
    given: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    for each in sorted(given, key=source.extent):
        at = _COMMA.match(utf8, found[-1].end) if found else _OPENS.match(utf8, _behind_callee(source, call))
        assert at is not None
        star = _STAR.match(utf8, at.end())
        keyword = _KEYWORD.match(utf8, at.end()) if isinstance(each, ast.keyword) and each.arg else None
        name = each.arg if isinstance(each, ast.keyword) else None
        place = keyword.span(1) if keyword else (at.end(), at.end())
        stars, value = star[1].decode() if star else "", (keyword or star or at).end()
        found.append(Argument(name, place, stars, at.end(), value, behind_brackets(source, each, closing)))
    return found


def callee_of(source: Source, call: ast.Call) -> tuple[int, int]:
    """The place of what is called, with brackets around it."""
    return source.extent(call)[0], _behind_callee(source, call)


def inside_call(source: Source, call: ast.Call, *, layout: bool = True) -> int:
    """The place behind the opening bracket of a call, and the layout there."""
    found = _OPENS.match(source.utf8, _behind_callee(source, call))
    assert found is not None
    return found.end() if layout else found.end(1)


def behind_brackets(source: Source, node: ast.expr | ast.keyword, end: int) -> int:
    """The place behind a node with the brackets around it, which close before `end`.

    A generator that is the one argument of a call has the brackets of the call.
    """
    found = _CLOSED.match(source.utf8, min(source.extent(node)[1], end), end)
    assert found is not None
    return found.end()


def expected_call(node: ast.expr) -> ast.Call:
    """The node, which has to be a call: CannotRewrite."""
    if not isinstance(node, ast.Call):
        raise CannotRewrite("not the call that was expected")
    return node


def expected_method(node: ast.expr) -> ast.Attribute:
    """`x.method` of `x.method(...)`: CannotRewrite; where it is longer than an operand may be, it is a hole."""
    method = expected_call(node).func
    if not isinstance(method, ast.Attribute):
        raise CannotRewrite("the object of the method is not seen")
    return method


def _behind_callee(source: Source, call: ast.Call) -> int:
    return behind_brackets(source, call.func, source.extent(call)[1])


def _spliced(source: Source, changes: Sequence[Change]) -> str:
    return splice(source.utf8, [(*place, new.encode()) for place, new in changes]).decode()
