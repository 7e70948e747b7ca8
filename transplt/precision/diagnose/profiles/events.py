"""Reads the events of a chrome trace one by one: a list of objects, or an object whose `traceEvents` is one.

A trace has gigabytes; no more than one event and a piece of the file is in memory. A trace that ends in the middle, as
one of a killed run does, is read to there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from transplt.precision.diagnose.profiles.tables import UnreadableProfile

_PIECE = 4 * 1024 * 1024
#: A larger event is none.
_LARGEST = 4 * 1024 * 1024
_LIST = re.compile(r'"traceEvents"\s*:\s*\[')
_BETWEEN = re.compile(r"[\s,]*")
#: Within so much of the beginning the list has to begin.
_HEAD = 1024 * 1024


class Events:
    """The events of a trace, dictionaries; `cut` is True when the file ended before its list."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._text = ""
        self._at = 0
        self._pending = b""
        self._ended = False
        self.cut = False
        self._begin()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        decode = json.JSONDecoder().raw_decode
        while True:
            self._at = _end(_BETWEEN, self._text, self._at)
            while self._at >= len(self._text):
                if not self._more():
                    self.cut = True
                    return
                self._at = _end(_BETWEEN, self._text, self._at)
            if self._text[self._at] == "]":
                return
            try:
                event, self._at = decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if len(self._text) - self._at > _LARGEST:
                    raise UnreadableProfile("it holds something that is no event of a trace") from error
                if not self._more():
                    self.cut = True
                    return
                continue
            except (ValueError, RecursionError) as error:
                raise UnreadableProfile("it holds something that is no event of a trace") from error
            if isinstance(event, dict):
                yield event

    def _begin(self) -> None:
        while self._more() and not self._text.strip():
            pass
        first = _end(_BETWEEN, self._text.lstrip("\ufeff"), 0) + self._text.startswith("\ufeff")
        start = self._text[first : first + 1]
        if start == "[":
            self._at = first + 1
            return
        if start != "{":
            raise UnreadableProfile("it is no JSON of events")
        while (found := _LIST.search(self._text)) is None:
            if len(self._text) > _HEAD or not self._more():
                raise UnreadableProfile("it holds no traceEvents")
        self._at = found.end()

    def _more(self) -> bool:
        """Reads on; False at the end of the file."""
        piece = b"" if self._ended else self._file.read(_PIECE)
        self._ended = self._ended or not piece
        data = self._pending + piece
        cut = len(data) if self._ended else _whole(data)
        self._pending = data[cut:]
        self._text = self._text[self._at :] + data[:cut].decode("utf-8", "backslashreplace")
        self._at = 0
        return bool(piece)


def _whole(data: bytes) -> int:
    """How many bytes of a piece hold whole characters: one of UTF-8 may lie across two pieces."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            return len(data) - back
        if byte < 0x80:
            break
    return len(data)


def _end(expression: re.Pattern[str], text: str, at: int) -> int:
    match = expression.match(text, at)
    return match.end() if match else at
