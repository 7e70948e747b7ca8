"""String literals in a piece of source: where each begins and ends, and what of it is text.

For expressions that Python has parsed before: what is no literal is not looked into, what is broken is no literal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TRIVIA = re.compile(r"(?:\\?[\r\n]|[ \t\f]|#[^\r\n]*)*")
_PREFIX = r"(?:(?<!\w)(?:[rR][bBfFtT]?|[bBfFtT][rR]?|[uU]))?"
_OPENS = re.compile(rf"({_PREFIX})(\"\"\"|'''|\"|')")
_QUOTES = ('"""', "'''", '"', "'")
#: What ends a literal, or must be stepped over on the way.
_PLAIN = {quote: re.compile(rf"\\.|{quote}", re.S) for quote in _QUOTES}
_TURNS = r"\\[^{}]|\{\{|\}\}|\{|"
_FORMATTED = {(quote, True): re.compile(_TURNS + quote, re.S) for quote in _QUOTES}
_FORMATTED |= {(quote, False): re.compile(r"\\N\{[^}]*\}|" + _TURNS + quote, re.S) for quote in _QUOTES}
_FIELD = re.compile(rf"#[^\r\n]*|{_PREFIX}(?:\"\"\"|'''|\"|')|[()\[\]{{}}:]")
_SPECIFICATION = re.compile(r"[{}]")


class _Broken(Exception):
    """A literal without an end."""


@dataclass(frozen=True, slots=True)
class Literal:
    """One string literal at `start`..`end` of a text.

    `text` are the spans that a replacement of words may look at: the whole literal, or what stands between the fields
    of an f-string.
    """

    start: int
    end: int
    quote: str
    formatted: bool
    text: tuple[tuple[int, int], ...]


def literals(text: str) -> list[Literal]:
    """The literals of an expression that consists of nothing else (implicit concatenation); else an empty list."""
    found: list[Literal] = []
    at = 0
    while at < len(text):
        opens = _OPENS.match(text, at)
        if opens is None:
            return []
        try:
            found.append(_literal(text, opens))
        except _Broken:
            return []
        at = _end_of(_TRIVIA, text, found[-1].end)
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


def _end_of(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def _literal(text: str, opens: re.Match[str]) -> Literal:
    prefix, quote = opens.group(1).lower(), opens.group(2)
    if "f" not in prefix and "t" not in prefix:
        end = _plain_end(text, opens.end(), quote)
        return Literal(opens.start(), end, quote, False, ((opens.start(), end),))
    end, spans = _formatted(text, opens.end(), quote, "r" in prefix)
    return Literal(opens.start(), end, quote, True, tuple(spans))


def _plain_end(text: str, at: int, quote: str) -> int:
    for match in _PLAIN[quote].finditer(text, at):
        if match.group() == quote:
            return match.end()
    raise _Broken


def _formatted(text: str, at: int, quote: str, raw: bool) -> tuple[int, list[tuple[int, int]]]:
    """End of an f-string whose body begins at `at`, and the spans between its fields."""
    turns = _FORMATTED[quote, raw]
    spans: list[tuple[int, int]] = []
    begin = at
    while match := turns.search(text, at):
        at = match.end()
        if match.group() == quote:
            spans.append((begin, match.start()))
            return at, spans
        if match.group() == "{":
            spans.append((begin, match.start()))
            begin = at = _field_end(text, at)
    raise _Broken


def _field_end(text: str, at: int) -> int:
    """End of a field, behind its closing brace; strings in it may use the quotes around it (Python 3.12)."""
    depth = 0
    while match := _FIELD.search(text, at):
        found = match.group()
        at = match.end()
        if found[0] == "#":
            continue
        if found in ")]}":
            if depth == 0:
                return at
            depth -= 1
        elif found in "([{":
            depth += 1
        elif found == ":":
            if depth == 0:
                return _specification_end(text, at)
        else:
            opens = _OPENS.match(text, match.start())
            assert opens is not None
            at = _literal(text, opens).end
    raise _Broken


def _specification_end(text: str, at: int) -> int:
    """End of the field whose format begins at `at`; the format is text and may hold fields."""
    while match := _SPECIFICATION.search(text, at):
        at = match.end()
        if match.group() == "}":
            return at
        at = _field_end(text, at)
    raise _Broken
