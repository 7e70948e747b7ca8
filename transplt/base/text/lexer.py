"""The one lexer of Python literals: comments and strings, f-strings with what is text and what is code in them.

It knows nothing else of the language and is the same on every Python. A literal without an end stops at its line (in
triple quotes at the end of the file): what comes after is read as code again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from transplt.base.text.source import Source

_QUOTES = (b'"""', b"'''", b'"', b"'")
_OPENS = re.compile(rb"#[^\r\n]*|([rRbBuUfFtT]{0,3})(\"\"\"|'''|\"|')")
#: What begins a comment or a string; the letters before it are looked at when it is found, and not everywhere.
_MARK = re.compile(rb"[#\"']")
_PREFIXES = b"rRbBuUfFtT"
_IDENTIFIER = re.compile(rb"[A-Za-z0-9_\x80-\xff]")
_LAYOUT = re.compile(rb"(?:\\?[\r\n]|[ \t\f]|#[^\r\n]*)*")
#: What ends a literal, or is stepped over on the way; searched in turn, so that the cost stays linear.
_LINE = rb"\r|\n"
_ENDS_OF_LINE = (b"\r", b"\n")
_PLAIN = {
    quote: re.compile(rb"\\(?:\r\n|.)|" + quote + (b"" if len(quote) == 3 else b"|" + _LINE), re.S) for quote in _QUOTES
}
_TURNS = rb"\\(?:\r\n|[^{}])|\{\{|\}\}|\{|"
_FORMATTED = {
    (quote, raw): re.compile(
        (b"" if raw else rb"\\N\{[^}]*\}|") + _TURNS + quote + (b"" if len(quote) == 3 else b"|" + _LINE), re.S
    )
    for quote in _QUOTES
    for raw in (True, False)
}
_FIELD = re.compile(rb"#[^\r\n]*|(?<![A-Za-z0-9_\x80-\xff])[rRbBuUfFtT]{0,3}(?:\"\"\"|'''|\"|')|[\"']|[()\[\]{}:]")
_SPECIFICATION = re.compile(rb"[{}]")

#: f-strings that are nested deeper than this are read as plain strings: Python takes 150 at most.
DEEPEST = 150

Span = tuple[int, int]


class Lexed:
    """A comment or a string of a file at `start`..`end`, prefix included.

    Of a string `text` are the spans between the fields of an f-string (else the whole of it), `code` those in its
    fields that belong to no string in them. `closed` is False where the end is missing.
    """

    __slots__ = ("closed", "code", "end", "formatted", "quote", "spans", "start")

    def __init__(self, start: int, end: int, quote: bytes = b"", formatted: bool = False) -> None:
        self.start, self.end, self.quote, self.formatted = start, end, quote, formatted
        self.closed = True
        self.spans: list[Span] = []
        self.code: Sequence[Span] = ()

    @property
    def is_comment(self) -> bool:
        return not self.quote

    @property
    def text(self) -> list[Span]:
        return self.spans if self.formatted else [(self.start, self.end)]


@dataclass(frozen=True, slots=True)
class Literal:
    """One string literal at `start`..`end` of a text; `text` are the spans that a replacement of words may look at."""

    start: int
    end: int
    quote: str
    formatted: bool
    text: tuple[Span, ...]


def lex(utf8: bytes) -> Iterator[Lexed]:
    """The comments and strings of a file, sorted; those in the fields of an f-string are part of it."""
    at = 0
    while mark := _MARK.search(utf8, at):
        start, first = mark.start(), mark.start() if mark[0] == b"#" else max(at, mark.start() - 3)
        while start > first and utf8[start - 1] in _PREFIXES:
            start -= 1
        opens = _OPENS.match(utf8, start)
        assert opens is not None
        found = _read(utf8, opens)
        at = found.end
        yield found


def literals(text: str) -> list[Literal]:
    """The literals of an expression that consists of nothing else (implicit concatenation); else an empty list."""
    utf8 = text.encode()
    found: list[Literal] = []
    at = 0
    while at < len(utf8):
        opens = _OPENS.match(utf8, at)
        if opens is None or opens.group(2) is None:
            return []
        one = _read(utf8, opens)
        if not one.closed:
            return []
        found.append(_in_characters(utf8, one))
        layout = _LAYOUT.match(utf8, one.end)
        at = layout.end() if layout else one.end
    return found


def one_plain_literal(text: str, words: list[str]) -> bool:
    """True when the source of a string is a single literal that holds each of the words once, as they are.

    What stands in the fields of an f-string is code, with edits of its own.
    """
    found = literals(text)
    if len(found) != 1:
        return False
    body = "".join(text[start:end] for start, end in found[0].text)
    return all(body.count(word) == 1 for word in words)


def lines_in_strings(source: Source) -> set[int]:
    """Numbers of the lines that begin inside a string."""
    found: set[int] = set()
    for one in lex(source.utf8):
        if not one.is_comment:
            found.update(range(source.position(one.start)[0] + 1, source.position(one.end)[0] + 1))
    return found


def _in_characters(utf8: bytes, one: Lexed) -> Literal:
    """A literal with its places in characters instead of bytes."""
    places = [one.start, *(place for span in one.text for place in span), one.end]
    if not utf8.isascii():
        at = count = 0
        known: dict[int, int] = {}
        for offset in sorted(places):
            count += len(utf8[at:offset].decode())
            known[offset] = count
            at = offset
        places = [known[offset] for offset in places]
    spans = tuple(zip(places[1:-1:2], places[2:-1:2], strict=True))
    return Literal(places[0], places[-1], one.quote.decode(), one.formatted, spans)


def _read(utf8: bytes, opens: re.Match[bytes], depth: int = 0) -> Lexed:
    prefix, quote = opens.groups()
    start, end = opens.span()
    if quote is None:
        return Lexed(start, end)
    if prefix and not (start and _IDENTIFIER.match(utf8, start - 1)):  # in `xf"..."` the quote alone opens the string
        prefix = prefix.lower()
        if (b"f" in prefix or b"t" in prefix) and depth < DEEPEST:
            found = Lexed(start, end, quote, True)
            _formatted(utf8, found, b"r" in prefix, depth)
            return found
    found = Lexed(start, end, quote)
    stop = _PLAIN[quote].search
    while match := stop(utf8, end):
        turn = match.group()
        end = match.end()
        if turn == quote:
            found.end = end
            return found
        if turn in _ENDS_OF_LINE:
            found.end, found.closed = match.start(), False
            return found
    found.end, found.closed = len(utf8), False
    return found


def _formatted(utf8: bytes, found: Lexed, raw: bool, depth: int) -> None:
    """Find the end of an f-string, what is text in it and what is code."""
    turns = _FORMATTED[found.quote, raw]
    found.code = []
    at = begin = found.end
    while match := turns.search(utf8, at):
        at = match.end()
        turn = match.group()
        if turn == found.quote or turn in _ENDS_OF_LINE:
            found.spans.append((begin, match.start()))
            found.closed = turn == found.quote
            found.end = at if found.closed else match.start()
            return
        if turn == b"{":
            found.spans.append((begin, match.start()))
            begin = at = _field_end(utf8, at, found, depth)
    found.spans.append((begin, len(utf8)))
    found.end, found.closed = len(utf8), False


def _field_end(utf8: bytes, at: int, outer: Lexed, depth: int) -> int:
    """End of a field, behind its closing brace; strings in it may use the quotes around it (Python 3.12)."""
    code = outer.code
    assert isinstance(code, list)
    brackets = 0
    begin = at
    while match := _FIELD.search(utf8, at):
        found = match.group()
        at = match.end()
        if found[:1] == b"#":
            continue
        if found in (b")", b"]", b"}"):
            if brackets == 0:
                code.append((begin, match.start()))
                return at
            brackets -= 1
        elif found in (b"(", b"[", b"{"):
            brackets += 1
        elif found == b":":
            if brackets == 0:
                code.append((begin, match.start()))
                return _specification_end(utf8, at, outer, depth)
        else:
            code.append((begin, match.start()))
            opens = _OPENS.match(utf8, match.start())
            assert opens is not None
            inner = _read(utf8, opens, depth + 1)
            code += inner.code
            begin = at = inner.end
    code.append((begin, len(utf8)))
    return len(utf8)


def _specification_end(utf8: bytes, at: int, outer: Lexed, depth: int) -> int:
    """End of the field whose format begins at `at`; the format is text and may hold fields."""
    while match := _SPECIFICATION.search(utf8, at):
        at = match.end()
        if match.group() == b"}":
            return at
        at = _field_end(utf8, at, outer, depth + 1) if depth < DEEPEST else at
    return len(utf8)
