"""Where the values of a TOML file stand: for those who change one and leave every other byte as it is.

It is for texts that `parse_toml` has read: what is no TOML has no places. Characters count from 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}' r"|'''.*?'{3,5}" r'|"(?:[^"\\\n]|\\.)*"' r"|'[^'\n]*'",
    re.S,
)
_BARE = re.compile(r"[^\s,\]}#]+(?:[ ][^\s,\]}#]+)?")
_KEY = re.compile(r"[A-Za-z0-9_-]+|\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'")
#: The step of a path into an array.
ITEM = "[]"


@dataclass(frozen=True, slots=True)
class TomlValue:
    """A value: the keys that lead to it (`ITEM` for an element of an array), from where to where it stands, and where
    its key begins (for an element, where it begins itself)."""

    path: tuple[str, ...]
    start: int
    end: int
    key: int


class _Unreadable(Exception):
    """What stands here is no TOML."""


def toml_values(text: str) -> list[TomlValue]:
    """Every value of a file, arrays and tables in one line too, an outer one before those in it."""
    found: list[TomlValue] = []
    table: tuple[str, ...] = ()
    at = 0
    try:
        while (at := _past(_BLANK, text, at)) < len(text):
            if text[at] == "[":
                double = text.startswith("[[", at)
                table, at = _keys(text, at + 1 + double)
                at += 1 + double
            else:
                at = _row(text, at, table, found)
    except (_Unreadable, IndexError, RecursionError):
        return []
    return found


def toml_tables(text: str) -> Iterator[tuple[tuple[str, ...], int]]:
    """The headers `[a.b]` and `[[a.b]]` of a file, each with the place where it begins."""
    inside = [(each.start, each.end) for each in toml_values(text)]
    for match in re.finditer(r"^[ \t]*\[{1,2}", text, re.M):
        if not any(start <= match.start() < end for start, end in inside):
            try:
                yield _keys(text, match.end())[0], match.start()
            except (_Unreadable, IndexError):
                return


def _past(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    if match is None:
        raise _Unreadable
    return match.end()


def _keys(text: str, at: int) -> tuple[tuple[str, ...], int]:
    """The steps of a dotted key, and the place behind it and the blanks after it."""
    steps = []
    while True:
        at = _past(_SPACE, text, at)
        match = _KEY.match(text, at)
        if match is None:
            raise _Unreadable
        steps.append(match.group().strip("\"'") if match.group()[0] in "\"'" else match.group())
        at = _past(_SPACE, text, match.end())
        if text[at : at + 1] != ".":
            return tuple(steps), at
        at += 1


def _row(text: str, at: int, table: tuple[str, ...], found: list[TomlValue]) -> int:
    key = at
    steps, at = _keys(text, at)
    if text[at] != "=":
        raise _Unreadable
    return _value(text, _past(_SPACE, text, at + 1), (*table, *steps), key, found)


def _value(text: str, at: int, path: tuple[str, ...], key: int, found: list[TomlValue]) -> int:
    place = len(found)
    start = at
    if text[at] == "[":
        at = _past(_BLANK, text, at + 1)
        while text[at] != "]":
            at = _past(_BLANK, text, _value(text, at, (*path, ITEM), at, found))
            if text[at] == ",":
                at = _past(_BLANK, text, at + 1)
        at += 1
    elif text[at] == "{":
        at = _past(_BLANK, text, at + 1)
        while text[at] != "}":
            at = _past(_BLANK, text, _row(text, at, path, found))
            if text[at] == ",":
                at = _past(_BLANK, text, at + 1)
        at += 1
    else:
        at = _past(_STRING if text[at] in "\"'" else _BARE, text, at)
    found.insert(place, TomlValue(path, start, at, key))
    return at
