"""The values of a JSON file, with comments and commas at the end as editors and JSON5 allow them, in one pass."""

from __future__ import annotations

import re
from dataclasses import dataclass

from transplt.edits.edit import Extent
from transplt.engine.files.config.values import MOST_ITEMS, WORD, Holder, Value

_GAP = re.compile(rb"(?:[ \t\r\n\f\v]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_SCALAR = re.compile(rb"(\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')|[^\s\"'{}\[\],:/]+", re.DOTALL)
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
    at, expected = reader.past_gap(0), True  # whether a value may stand there: at the begin, behind a bracket, a comma
    while at < len(utf8):
        mark, inner = utf8[at : at + 1], reader.open
        if mark == b"," and inner:
            expected = True
        elif mark in (b"}", b"]") and inner and inner[-1].holder.is_list == (mark == b"]"):
            inner.pop()
            expected = False
        elif expected:
            at = reader.value(at)
            expected = utf8[at] in b"{["
        else:
            raise NotJson
        at = reader.past_gap(at + 1)
    if reader.open:
        raise NotJson
    return reader.found


@dataclass(slots=True)
class _Open:
    """A mapping or a list that is not closed: how many values of it are read, and the text of the last one."""

    holder: Holder
    count: int = 0
    last: str = ""


class _Reader:
    def __init__(self, utf8: bytes) -> None:
        self.utf8 = utf8
        self.found: list[Value] = []
        self.open: list[_Open] = []

    def past_gap(self, at: int) -> int:
        """The next byte that is no blank and no comment."""
        match = _GAP.match(self.utf8, at)
        return match.end() if match else at

    def value(self, at: int) -> int:
        """Read a value, with its key in a mapping; the place of its last byte, or of the bracket that opens it."""
        around = self.open[-1] if self.open else _Open(Holder())
        holder = around.holder
        name, key = str(around.count) if self.open else "", None  # of what stands in a list, or at the top
        if self.open and not holder.is_list:
            name, key, at = self._key(at)
        text, end = "", at + 1
        if (mark := self.utf8[at : at + 1]) in (b"{", b"["):
            if key is not None:
                holder.texts[name] = ""
                if WORD.search(name):
                    self.found.append(Value.many(name, holder, key))
            self.open.append(_Open(Holder(name, holder if self.open else None, mark == b"[")))
        else:
            inner, end, quoted = self._scalar(at)
            raw = self.utf8[inner[0] : inner[1]]
            wanted = _WORD.search(raw) is not None
            text = raw.decode() if wanted or len(raw) <= _SHORT else ""
            if key is not None or around.count < MOST_ITEMS:
                holder.texts[name] = text
            if self.open and (wanted or (key is not None and WORD.search(name))):
                extent = inner if quoted and b"\\" not in raw else None
                self.found.append(Value(text, name, holder, extent, (at, end), key, around.last))
        around.count, around.last = around.count + 1, text
        return end - 1

    def _key(self, at: int) -> tuple[str, Extent, int]:
        """A key, its place without quotes, and where its value begins."""
        (start, stop), end, _ = self._scalar(at)
        colon = self.past_gap(end)
        if self.utf8[colon : colon + 1] != b":":
            raise NotJson
        return self.utf8[start:stop].decode(), (start, stop), self.past_gap(colon + 1)

    def _scalar(self, at: int) -> tuple[Extent, int, bool]:
        """The place of a text without quotes, its end with them, and whether it has any."""
        match = _SCALAR.match(self.utf8, at)
        if match is None:
            raise NotJson
        start, end = match.span()
        return ((start + 1, end - 1) if match[1] else (start, end)), end, match[1] is not None
