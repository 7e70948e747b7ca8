"""Edits that need no tree of LibCST: what changes is named by `ast` and replaced where it stands.

All that is not replaced stays as it is written. `ast` says where nodes begin and end; brackets around them, and layout
between the parts of a name, are read from there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence

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
_OPENS = re.compile(LAYOUT + rb"\(" + LAYOUT)
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


def inside_call(source: Source, call: ast.Call) -> int:
    """The place behind the opening bracket of a call, and the layout there."""
    found = _OPENS.match(source.utf8, behind_brackets(source, call.func, source.extent(call)[1]))
    assert found is not None
    return found.end()


def behind_brackets(source: Source, node: ast.expr, end: int) -> int:
    """The place behind a node with the brackets around it, which close before `end`."""
    found = _CLOSED.match(source.utf8, source.extent(node)[1], end)
    assert found is not None
    return found.end()


def _spliced(source: Source, changes: Sequence[Change]) -> str:
    return splice(source.utf8, [(*place, new.encode()) for place, new in changes]).decode()
