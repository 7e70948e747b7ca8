"""The values of a JSON file, with comments and commas at the end as editors and JSON5 allow them, in one pass."""

from __future__ import annotations

import re

from transplt.edits.edit import Extent
from transplt.files.config.values import MOST_ITEMS, WORD, Holder, Value

_TOKEN = re.compile(
    rb"[ \t\r\n\f\v]*"
    rb"(?:(?P<string>\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')"
    rb"|(?P<mark>[{}\[\],:])"
    rb"|(?P<comment>//[^\n]*|/\*.*?\*/)"
    rb"|(?P<bare>[^\s\"'{}\[\],:/]+)"
    rb"|(?P<end>\Z))",
    re.DOTALL,
)
#: A text of this length may be looked for beside another value.
_SHORT = 80
_WORD = re.compile(WORD.pattern.encode(), re.I)


class NotJson(ValueError):
    """The text is no JSON."""


def values(utf8: bytes) -> list[Value]:
    """The values of a text that have a word of CUDA, or whose key has, in the order of the file.

    NotJson where brackets, strings or colons are not those of JSON.
    """
    reader = _Reader(utf8)
    at = 0
    while True:
        match = _TOKEN.match(utf8, at)
        if match is None:
            raise NotJson
        at = match.end()
        kind = match.lastgroup
        if kind == "mark":
            reader.mark(match.group(kind))
        elif kind == "end":
            return reader.finished()
        elif kind != "comment":
            start, end = match.span(kind or 0)
            reader.scalar(start, end, kind == "string")


class _Reader:
    """Where the reader is: `here` in which container, `key` behind which key, `colon` behind its colon.

    `parted`: a comma or the bracket stands before.
    """

    def __init__(self, utf8: bytes) -> None:
        self.utf8 = utf8
        self.found: list[Value] = []
        self.here: Holder | None = None
        self.key: tuple[str, Extent] | None = None
        self.colon = self.top = self.parted = False
        self.before, self.index = "", 0
        self.indices: list[int] = []

    def mark(self, mark: bytes) -> None:
        if mark in b"{[":
            self._expect_value()
            name = self.key[0] if self.key is not None else str(self.index) if self.here is not None else ""
            if self.key is not None and self.here is not None:
                self.here.texts[name] = ""
                if WORD.search(name):
                    self.found.append(Value.many(name, self.here, self.key[1]))
            self.here = Holder(name, self.here, mark == b"[")
            self.indices.append(self.index)
            self.key, self.colon, self.index, self.before = None, False, 0, ""
            self.parted = True
        elif mark in b"}]":
            if self.here is None or self.here.is_list != (mark == b"]") or self.key is not None:
                raise NotJson
            self.here, self.index, self.before = self.here.above, self.indices.pop() + 1, ""
            self.parted = False
        elif mark == b":":
            if self.here is None or self.here.is_list or self.key is None or self.colon:
                raise NotJson
            self.colon = True
        elif self.key is not None or self.here is None:
            raise NotJson
        else:
            self.parted = True

    def scalar(self, start: int, end: int, quoted: bool) -> None:
        inner = (start + 1, end - 1) if quoted else (start, end)
        raw = self.utf8[inner[0] : inner[1]]
        here = self.here
        if here is not None and not here.is_list and self.key is None:
            if not self.parted:
                raise NotJson
            self.key = (raw.decode(), inner)
            return
        self._expect_value()
        wanted = _WORD.search(raw) is not None
        text = raw.decode() if wanted or len(raw) <= _SHORT else ""
        if here is not None:
            name, at = self.key if self.key is not None else (str(self.index), None)
            if at is not None or self.index < MOST_ITEMS:
                here.texts[name] = text
            if wanted or (at is not None and WORD.search(name)):
                extent = inner if quoted and b"\\" not in raw else None
                lines = () if extent is None else (extent,)
                self.found.append(Value(text, name, here, extent, (start, end), at, self.before, lines))
        self.key, self.colon, self.index, self.before = None, False, self.index + 1, text
        self.parted = False

    def _expect_value(self) -> None:
        """A value may stand at the top once, in a list, and in a mapping behind a key and its colon."""
        if self.here is None:
            if self.top:
                raise NotJson
            self.top = True
        elif not self.parted or (not self.here.is_list and not (self.key is not None and self.colon)):
            raise NotJson

    def finished(self) -> list[Value]:
        if self.here is not None:
            raise NotJson
        return self.found
