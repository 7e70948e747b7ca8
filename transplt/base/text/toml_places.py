"""Where the keys and values of a TOML file stand: for those who change one and leave every other byte as it is.

It reads more than a parser does (keys twice, keys of any letters, inline tables over several lines as TOML 1.1 has
them) and finds the same places in whatever `parse_toml` reads. Of a text that holds a character for each byte (as
latin-1 decodes it) the places are those of the bytes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t\r]*")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}' r"|'''.*?'{3,5}" r'|"(?:[^"\\\n]|\\.)*"' r"|'[^'\n]*'",
    re.S,
)
_BARE = re.compile(r"[^\s\"'{}\[\],=#]+(?:[ \t\r]+[^\s\"'{}\[\],=#]+)*", re.A)  # 1979-05-27 07:32:00 is one
_KEY = re.compile(r"[ \t\r.]*(?:\"((?:[^\"\\\n]|\\.)*)\"|'([^'\n]*)'|([^\s\"'{}\[\],=#.]+))[ \t\r.]*", re.A)
#: The step of a path into an array.
ITEM = "[]"


class _Unreadable(Exception):
    """What stands here is no TOML."""


@dataclass(frozen=True, slots=True)
class TomlValue:
    """A value, or the header of a table: the keys that lead to it (`ITEM` for an element of an array), from where to
    where it stands, and where its key begins (for an element and a header, where it begins itself).

    `steps`: the places of its own keys, without quotes (`a` and `b` of `a.b = 1`); an element has none.
    """

    path: tuple[str, ...]
    start: int
    end: int
    key: int
    steps: tuple[tuple[int, int], ...] = ()
    is_header: bool = False


def toml_values(text: str) -> list[TomlValue]:
    """Every value of a file, arrays and tables in one line too, an outer one before those in it; none of no TOML."""
    return [each for each in toml_rows(text) or () if not each.is_header]


def toml_rows(text: str) -> list[TomlValue] | None:
    """The values and headers of a file, in its order; None for what is no TOML, or is nested too deeply."""
    try:
        return _Reader(text).read()
    except (_Unreadable, RecursionError):
        return None


class _Reader:
    """Reads on from `at`; `rows` are read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.rows: list[TomlValue] = []

    def read(self) -> list[TomlValue]:
        table: tuple[str, ...] = ()
        self._past(_BLANK)
        while self.at < len(self.text):
            start = self.at
            if self._has("["):
                closing = "]]" if self._has("[[") else "]"
                self.at += len(closing)
                table, steps = self._keys(closing)
                self.rows.append(TomlValue(table, start, self.at, start, steps, is_header=True))
            else:
                self._row(table)
            self._past(_BLANK)
        return self.rows

    def _row(self, above: tuple[str, ...]) -> None:
        start = self.at
        names, steps = self._keys("=")
        self._past(_SPACE)
        self._value((*above, *names), start, steps)

    def _keys(self, end: str) -> tuple[tuple[str, ...], tuple[tuple[int, int], ...]]:
        """The steps of a dotted key and their places; reads on behind `end`."""
        steps = []
        while not self._has(end):
            match = self._past(_KEY)
            steps.append(match.span(match.lastindex or 0))
        if not steps:
            raise _Unreadable
        self.at += len(end)
        return tuple(self.text[start:stop] for start, stop in steps), tuple(steps)

    def _value(self, path: tuple[str, ...], key: int, steps: tuple[tuple[int, int], ...] = ()) -> None:
        place, start = len(self.rows), self.at
        closing = "]" if self._has("[") else "}" if self._has("{") else ""
        if not closing:
            self._past(_STRING if self._has('"') or self._has("'") else _BARE)
        else:
            self.at += 1
            self._past(_BLANK)
            while not self._has(closing):
                if closing == "]":
                    self._value((*path, ITEM), self.at)
                else:
                    self._row(path)
                self._past(_BLANK)
                if self._has(","):
                    self.at += 1
                    self._past(_BLANK)
                elif not self._has(closing):
                    raise _Unreadable
            self.at += 1
        self.rows.insert(place, TomlValue(path, start, self.at, key, steps))

    def _has(self, mark: str) -> bool:
        return self.text.startswith(mark, self.at)

    def _past(self, pattern: re.Pattern[str]) -> re.Match[str]:
        match = pattern.match(self.text, self.at)
        if match is None:
            raise _Unreadable
        self.at = match.end()
        return match
