"""The instructions of a Dockerfile with their places: continuation lines, comments between them, here-documents.

https://docs.docker.com/reference/dockerfile/ (parser directives, escape, comments, here-documents).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from transplt.edits.edit import Extent

_LINE = re.compile(rb"([^\r\n]*)(\r\n|\r|\n|\Z)")
_DIRECTIVE = re.compile(rb"#[ \t]*(\w+)[ \t]*=[ \t]*(\S+)[ \t]*")
_COMMENT = re.compile(rb"[ \t]*#")
_KEYWORD = re.compile(rb"[ \t]*(?:(ONBUILD)[ \t]+)?([A-Za-z]+)[ \t]*", re.IGNORECASE)
_HEREDOC = re.compile(rb"<<(-?)(['\"]?)([A-Za-z_]\w*)\2")
_FLAG = re.compile(rb"[ \t]*--[a-z-]+(?:=(?:\"[^\"]*\"|'[^']*'|[^\s\"'])*)?(?=[ \t]|\Z)")
#: The pieces of the words of an instruction, by the escape character: `cut` is an escaped end of a line.
_PIECES = {
    escape: re.compile(
        rb"(?P<cut>%s[ \t]*(?:\r\n|\r|\n|\Z))|(?P<escaped>%s.)|(?P<quote>[\"'])|(?P<blank>[ \t\r\n]+)"
        rb"|(?P<plain>[^ \t\r\n\"'%s]+)" % ((re.escape(escape),) * 3),
        re.DOTALL,
    )
    for escape in (b"\\", b"`")
}
_WITH_HEREDOCS = frozenset({"RUN", "COPY", "ADD"})


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction. `lines` are the byte ranges of its arguments, a range for each line, without the comments and
    the empty lines between them; what continues a line belongs to it, line ends as well. `documents` are the bodies of
    its here-documents, each with the text that opens it; `end` is where the last of its lines ends.
    """

    keyword: str
    lines: tuple[Extent, ...]
    documents: tuple[tuple[bytes, Extent], ...] = ()
    end: int = 0
    escape: bytes = b"\\"

    @property
    def extent(self) -> Extent:
        """From the first byte of the arguments to the last."""
        return self.lines[0][0], self.lines[-1][1]


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the arguments, quotes and all: its place and its bytes; `cut` where an escaped line end is in it."""

    start: int
    end: int
    text: bytes
    cut: bool = False

    @property
    def value(self) -> bytes:
        """The word without quotes around it."""
        text = self.text
        return text[1:-1] if len(text) > 1 and text[:1] == text[-1:] and text[:1] in (b'"', b"'") else text


def instructions(utf8: bytes) -> Iterator[Instruction]:
    """The instructions of a Dockerfile, in order. What is none is passed over."""
    escape, at, size = _escape_of(utf8), 0, len(utf8)
    while at < size:
        line = _line(utf8, at)
        head = None if _COMMENT.match(utf8, at, line.end(1)) else _KEYWORD.match(utf8, at, line.end(1))
        if head is None:
            at = line.end()
            continue
        keyword = head[2].upper().decode()
        lines: list[Extent] = []
        begin = head.end()
        while True:
            comment = bool(lines) and _COMMENT.match(utf8, begin, line.end(1)) is not None
            blank = bool(lines) and not utf8[begin : line.end(1)].strip()
            goes_on = utf8[begin : line.end(1)].rstrip(b" \t").endswith(escape)
            if not (comment or blank):
                lines.append((begin, line.end() if goes_on else line.end(1)))
            at = line.end()
            if at >= size or not (goes_on or comment or blank):
                break
            line = _line(utf8, at)
            begin = at
        documents = []
        if keyword in _WITH_HEREDOCS:
            for opened in _HEREDOC.finditer(utf8[lines[0][0] : lines[-1][1]]):
                body, at = _document(utf8, at, opened[3], bool(opened[1]))
                documents.append((opened[0], body))
        end = lines[-1][1]
        if documents:
            end = len(utf8[:at].rstrip(b"\r\n"))
        yield Instruction(keyword, tuple(lines), tuple(documents), end, escape)


def _escape_of(utf8: bytes) -> bytes:
    """The escape character, which a directive at the top of the file may choose."""
    at = 0
    while match := _DIRECTIVE.fullmatch(utf8, at, _line(utf8, at).end(1)):
        if match[1].lower() == b"escape":
            return match[2] if match[2] in (b"\\", b"`") else b"\\"
        if (following := _line(utf8, at).end()) == at:
            break
        at = following
    return b"\\"


def _line(utf8: bytes, at: int) -> re.Match[bytes]:
    match = _LINE.match(utf8, at)
    assert match is not None
    return match


def _document(utf8: bytes, at: int, mark: bytes, tabs: bool) -> tuple[Extent, int]:
    """The body of a here-document that begins at `at`, and where the line behind its end begins."""
    begin = at
    while at < len(utf8):
        line = _line(utf8, at)
        if (line[1].lstrip(b"\t") if tabs else line[1]) == mark:
            return (begin, at), line.end()
        at = line.end()
    return (begin, at), at


def words(utf8: bytes, instruction: Instruction) -> Iterator[Word]:
    """The words of an instruction, parted by blanks outside of quotes."""
    pieces = _PIECES[instruction.escape]
    start, end, quote, cut = -1, -1, b"", False
    text: list[bytes] = []
    for first, last in instruction.lines:
        for piece in pieces.finditer(utf8, first, last):
            what = piece.lastgroup
            if what == "blank" and not quote:
                if start >= 0:
                    yield Word(start, end, b"".join(text), cut)
                start, cut = -1, False
                text.clear()
                continue
            if what == "cut":
                cut = start >= 0
                continue
            if start < 0:
                start = piece.start()
            if what == "quote":
                quote = b"" if quote == piece[0] else quote or piece[0]
            text.append(piece[0])
            end = piece.end()
    if start >= 0:
        yield Word(start, end, b"".join(text), cut)


def without_flags(utf8: bytes, lines: tuple[Extent, ...]) -> list[Extent]:
    """The arguments without the flags at their begin (`--mount=type=cache,target=/root/.cache`)."""
    left = list(lines)
    while left:
        start, end = left[0]
        match = _FLAG.match(utf8, start, end)
        if match is not None:
            left[0] = (match.end(), end)
        elif utf8[start:end].strip(b" \t\r\n\\`"):
            break
        else:
            left.pop(0)
    return left
