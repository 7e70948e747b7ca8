"""JSON as it lies in a file: where its values stand, and what each byte of a string stands for.

One pass over the tokens, whatever the nesting; a picture of some megabytes is one string, and one step.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],]', re.S)
_ESCAPE = re.compile(rb"\\u([0-9a-fA-F]{4})(?:\\u([0-9a-fA-F]{4}))?|\\(.)", re.S)
_SHORT = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b'"': b'"', b"\\": b"\\", b"/": b"/"}
_COLON = re.compile(rb"\s*:")

Path = tuple[str | int, ...]


@dataclass(slots=True)
class _Open:
    """An object or a list that is not closed: where it begins, its place in what holds it, and the next in it."""

    start: int
    is_list: bool
    key: str | int = ""


def values(utf8: bytes, depth: int) -> Iterator[tuple[Path, int, int]]:
    """(keys and indices that lead there, start, end) of the strings, lists and objects of a JSON text, where they end.

    Those below `depth` keys are left out. The text must be JSON: what is none gives places without a meaning.
    """
    stack: list[_Open] = []
    for match in _TOKEN.finditer(utf8):
        mark = utf8[match.start()]
        top = stack[-1] if stack else None
        if mark == 0x22:  # "
            if top is not None and not top.is_list and _COLON.match(utf8, match.end()):
                top.key = str(json.loads(match.group())) if len(stack) <= depth else ""
            elif len(stack) <= depth:
                yield tuple(each.key for each in stack), match.start(), match.end()
        elif mark in b"{[":
            stack.append(_Open(match.start(), mark == 0x5B, 0 if mark == 0x5B else ""))
        elif mark in b"}]":
            if stack:
                start = stack.pop().start
                if len(stack) <= depth:
                    yield tuple(each.key for each in stack), start, match.end()
        elif top is not None and top.is_list:
            assert isinstance(top.key, int)
            top.key += 1


@dataclass(slots=True)
class Decoded:
    """The text of one or several string literals, one after the other, as UTF-8, and where its bytes come from."""

    utf8: bytearray = field(default_factory=bytearray)
    _starts: list[int] = field(default_factory=list)  # of runs, in the text
    _runs: list[tuple[int, int, bool]] = field(default_factory=list)  # start and end in the file, whether as it is
    _line_ends: list[int] | None = None

    def add(self, data: bytes, start: int, end: int) -> None:
        """Add the literal whose quotes stand at `start` and before `end`. ValueError for half a surrogate pair."""
        at, stop = start + 1, end - 1
        while (escape := data.find(b"\\", at, stop)) >= 0:
            self._run(data[at:escape], at, escape, True)
            match = _ESCAPE.match(data, escape)
            assert match is not None
            text, at = _unescaped(match)
            self._run(text, escape, at, False)
        self._run(data[at:stop], at, stop, True)

    def _run(self, text: bytes, start: int, end: int, plain: bool) -> None:
        if text:
            self._starts.append(len(self.utf8))
            self._runs.append((start, end, plain))
            self.utf8 += text
            self._line_ends = None

    def start(self, offset: int) -> int:
        """Where the byte at an offset of the text stands in the file; of the end, the place behind the last one."""
        if offset >= len(self.utf8):
            return self.end(offset)
        index = bisect_right(self._starts, offset) - 1
        start, _, plain = self._runs[index]
        return start + offset - self._starts[index] if plain else start

    def end(self, offset: int) -> int:
        """Where the byte in front of an offset of the text (above 0) ends in the file."""
        index = bisect_right(self._starts, offset - 1) - 1
        start, end, plain = self._runs[index]
        return start + offset - self._starts[index] if plain else end

    def line(self, offset: int) -> int:
        """The line of the text, from 1, in which the byte at an offset stands."""
        if self._line_ends is None:
            self._line_ends = [match.start() for match in re.finditer(b"\n", self.utf8)]
        return bisect_left(self._line_ends, offset) + 1


def _unescaped(match: re.Match[bytes]) -> tuple[bytes, int]:
    """What an escape stands for, as UTF-8, and where it ends."""
    first, second, short = match.groups()
    if short is not None:
        return _SHORT[short], match.end()
    code = int(first, 16)
    if 0xD800 <= code < 0xDC00 and second is not None and 0xDC00 <= int(second, 16) < 0xE000:
        return chr(0x10000 + ((code - 0xD800) << 10) + int(second, 16) - 0xDC00).encode(), match.end()
    return chr(code).encode(), match.start() + 6
