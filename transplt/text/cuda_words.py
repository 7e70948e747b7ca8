"""The independent count: every occurrence of a CUDA-bound word, by our own lexer, the same on every Python.

It knows comments, strings (f-strings with nested quotes too) and nothing else of the language.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

#: What binds a text to CUDA; any case.
WORDS = (b"cuda", b"nccl", b"cudnn", b"cublas", b"nvtx", b"nvidia", b"nvcc", b"cupti")
_WORD = re.compile(b"|".join(sorted(WORDS, reverse=True)))
_OPEN = re.compile(rb"#[^\r\n]*|([rRbBuUfFtT]{0,3})(\"\"\"|'''|\"|')")
#: What ends a literal, or is skipped on the way; searched in turn, so that the cost stays linear.
_STOP = {
    quote: re.compile(rb"\\(?:\r\n|.)|" + quote + (b"" if len(quote) == 3 else rb"|[\r\n]"), re.S)
    for quote in (b'"""', b"'''", b'"', b"'")
}
#: Where the reading of an f-string may turn.
_TURN = re.compile(rb"[\\{}\"'\r\n]")
_IDENT = re.compile(rb"[A-Za-z0-9_\x80-\xff]")


@dataclass(frozen=True, slots=True)
class Token:
    """One occurrence of a CUDA-bound word at byte `start` of the UTF-8 text; `where` is code, string or comment."""

    start: int
    end: int
    where: str


def mentions_cuda(lowered: bytes) -> bool:
    """True when lowered bytes hold one of `WORDS`."""
    return any(word in lowered for word in WORDS)


def find_tokens(utf8: bytes) -> list[Token]:
    """All tokens of a file, sorted by place."""
    lowered = utf8.lower()
    if not mentions_cuda(lowered):
        return []
    areas, fields = _literals(utf8)
    found = []
    index = 0
    inner = 0
    for match in _WORD.finditer(lowered):
        start = match.start()
        while index < len(areas) and areas[index][1] <= start:
            index += 1
        where = "code"
        if index < len(areas) and areas[index][0] <= start:
            where = areas[index][2]
        while inner < len(fields) and fields[inner][1] <= start:
            inner += 1
        if inner < len(fields) and fields[inner][0] <= start:
            where = "code"  # a field of an f-string, outside of the strings in it
        found.append(Token(start, match.end(), where))
    return found


def literal_areas(utf8: bytes) -> list[tuple[int, int, str]]:
    """(start, end, "string" | "comment") of every comment and string literal, prefix included, sorted."""
    return _literals(utf8)[0]


def _literals(utf8: bytes) -> tuple[list[tuple[int, int, str]], list[tuple[int, int]]]:
    """The areas of literals, and the code inside the fields of f-strings (strings in it left out); both sorted."""
    areas: list[tuple[int, int, str]] = []
    fields: list[tuple[int, int]] = []
    at = 0
    while match := _OPEN.search(utf8, at):
        start = match.start()
        quote = match.group(2)
        if quote is None:
            at = match.end()
            areas.append((start, at, "comment"))
            continue
        prefix = match.group(1)
        if prefix and start and _IDENT.match(utf8, start - 1):
            # `xf"..."` is no prefix; the quote opens the string all the same.
            prefix = b""
        if b"f" in prefix.lower() or b"t" in prefix.lower():
            at = _formatted_end(utf8, match.end(), quote, b"r" in prefix.lower(), fields)
        else:
            at = _plain_end(utf8, match.end(), quote)
        areas.append((start, at, "string"))
    return areas, fields


def _plain_end(utf8: bytes, at: int, quote: bytes) -> int:
    stop = _STOP[quote]
    while match := stop.search(utf8, at):
        first = match.group()[:1]
        if first == quote[:1]:
            return match.end()
        if first in b"\r\n":
            return match.start()
        at = match.end()
    return len(utf8)


def _formatted_end(utf8: bytes, at: int, quote: bytes, raw: bool, fields: list[tuple[int, int]]) -> int:
    """End of an f-string whose body begins at `at`; inner strings may use the same quotes (Python 3.12).

    The code in its fields is appended to `fields`.
    """
    depth = 0
    opened = at
    single = len(quote) == 1
    while match := _TURN.search(utf8, at):
        at = match.start()
        char = match.group()
        if depth == 0:
            if utf8.startswith(quote, at):
                return at + len(quote)
            if char == b"\\" and not (raw and utf8[at + 1 : at + 2] in b"{}"):
                at += 2
                continue
            if char in b"\r\n" and single:
                return at
            if char == b"{":
                if utf8[at + 1 : at + 2] == b"{":
                    at += 2
                    continue
                depth = 1
                opened = at + 1
        elif char == b"{":
            depth += 1
        elif char == b"}":
            depth -= 1
            if depth == 0:
                fields.append((opened, at))
        elif char in b"\"'":
            # Before 3.12 the closing quote may come inside a broken field; a nested string otherwise.
            inner = utf8[at : at + 3] if utf8[at : at + 3] in (b'"""', b"'''") else char
            fields.append((opened, at))
            at = opened = _plain_end(utf8, at + len(inner), inner)
            continue
        at += 1
    return len(utf8)
