"""Lines that are wrapped to the width of a terminal; Chinese characters take two columns, and may begin a line."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

_WIDE = r"\u2e80-\ufe0f\uff01-\uff60"
_OPENING, _CLOSING = r"\u300a\u300c\u300e\uff08", r"\u3001\u3002\u300b\u300d\u300f\uff0c\uff1b\uff1a\uff01\uff1f\uff09%"
#: What stays together: a word or a wide character, with the marks that end no line before it and begin none behind it.
_PIECES = rf"\s+|[{_OPENING}]*(?:[^\s{_WIDE}]+|[{_WIDE}])[{_CLOSING}]*"  # takes long to compile: not at import


def columns(text: str) -> int:
    """Width on a terminal: East Asian characters take two columns, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text
    )


def wrapped(line: str, width: int, margin: int) -> Iterator[str]:
    """A line in parts of at most `width` columns (0: as it is), those behind the first begin with `margin` spaces.

    Words are not broken.
    """
    if not width or columns(line) <= width:
        yield line
        return
    indent = line[: len(line) - len(line.lstrip())]
    begun, space = indent, ""
    empty = True
    for match in re.finditer(_PIECES, line.lstrip()):
        piece = match[0]
        if piece.isspace():
            space = piece
            continue
        if not empty and columns(begun) + columns(space) + columns(piece) > width:
            yield begun
            begun, space = " " * margin, ""
        begun += space + piece
        space, empty = "", False
    yield begun
