"""Bytes to text and back: encoding cookie, BOM, newlines, byte spans, splice.

Everything behind this module works on `Source.utf8`, the UTF-8 form of the decoded text without its BOM, because the
columns of `ast` are UTF-8 byte offsets whatever the cookie says.
"""

from __future__ import annotations

import ast
import codecs
import re
import warnings
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate
from tokenize import blank_re, cookie_re

from transplt.base.finding import Span

_NEWLINE = re.compile(rb"\r\n|\r|\n")
#: From so many bytes on a place in a line is counted from the last of these steps.
_STEP = 512
#: The bytes of UTF-8 with which no character begins.
_INNER = bytes(range(0x80, 0xC0))
#: Codecs for the names of hosts: they take the square of the time, and most texts not at all.
_NO_SOURCE = ("idna", "punycode")


class UnreadableSource(Exception):
    """A file that Python itself would refuse, or whose bytes cannot be kept through a rewrite; `python` is the oldest
    one that would not.
    """

    def __init__(
        self, code: str, line: int, reason: str, help: str = "", column: int = 1, python: str = ""
    ) -> None:
        super().__init__(reason)
        self.python = python
        self.column = column
        self.help = help
        self.code = code
        self.line = line
        self.reason = reason


def _begin(utf8: bytes) -> int:
    """How many characters begin in a piece of UTF-8."""
    return len(utf8) if utf8.isascii() else len(utf8.translate(None, _INNER))


@dataclass(slots=True)
class Source:
    """One decoded file. Where its lines begin is worked out when somebody asks: of many a file nobody does."""

    utf8: bytes
    encoding: str = "utf-8"
    bom: bytes = b""
    _starts: list[int] = field(default_factory=list, repr=False, compare=False)
    _counts: list[int] = field(default_factory=list, repr=False, compare=False)

    @property
    def line_starts(self) -> list[int]:
        """`line_starts[i]` is the byte offset in `utf8` at which line i + 1 begins."""
        if not self._starts:
            self._starts = line_starts(self.utf8)
        return self._starts

    @property
    def text(self) -> str:
        return self.utf8.decode("utf-8")

    def offset(self, line: int, column: int) -> int:
        """Byte offset of an `ast` position (line from 1, column in UTF-8 bytes from 0)."""
        return self.line_starts[line - 1] + column

    def extent(self, node: ast.expr | ast.stmt | ast.keyword | ast.alias | ast.arg) -> tuple[int, int]:
        """Byte offsets of the start and end of a node."""
        assert node.end_lineno is not None and node.end_col_offset is not None
        starts = self._starts or self.line_starts  # asked for most nodes of a file
        return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of a byte offset, both from 1, the column in characters."""
        starts = self.line_starts
        line = bisect_right(starts, offset)
        start = starts[line - 1]
        if offset - start > _STEP:
            return line, self._characters(offset) - self._characters(start) + 1
        return line, len(self.utf8[start:offset].decode("utf-8", "replace")) + 1

    def _characters(self, offset: int) -> int:
        """How many characters begin before a byte offset; counted once in steps, for places in long lines."""
        if not self._counts:
            self._counts.append(0)
            for at in range(0, len(self.utf8), _STEP):
                self._counts.append(self._counts[-1] + _begin(self.utf8[at : at + _STEP]))
        step = offset // _STEP
        return self._counts[step] + _begin(self.utf8[step * _STEP : offset])

    def span(self, start: int, end: int) -> Span:
        """The place of the bytes from `start` up to `end`."""
        line, column = self.position(start)
        end_line, end_column = self.position(end)
        return Span(line, column, end_line, end_column, start, end)

    def slice(self, start: int, end: int) -> str:
        return self.utf8[start:end].decode("utf-8")

    def line_text(self, line: int) -> str:
        """The text of a line (from 1) without its line end."""
        end = self.line_starts[line] if line < len(self.line_starts) else len(self.utf8)
        return self.utf8[self.line_starts[line - 1] : end].decode("utf-8").rstrip("\r\n")

    def newline(self) -> str:
        """The first line end of the file, `\\n` when it has none."""
        match = _NEWLINE.search(self.utf8)
        return match.group().decode() if match else "\n"

    def encode(self, utf8: bytes) -> bytes:
        """The bytes of a file whose text is `utf8`, in this file's encoding and with its BOM."""
        if self.encoding == "utf-8":
            return self.bom + utf8
        return utf8.decode("utf-8").encode(self.encoding)


def line_starts(utf8: bytes) -> list[int]:
    """Offsets at which lines begin; lines end at `\\r\\n`, `\\r` and `\\n` only, as Python's tokenizer has it."""
    starts = [0, *accumulate(map(len, utf8.splitlines(keepends=True)))]
    if utf8 and not utf8.endswith((b"\n", b"\r")):
        starts.pop()  # the end of a last line that has no line end
    return starts


def lines_of(text: str) -> list[str]:
    """The lines of a text without their ends, where `line_starts` has them; `str.splitlines` finds more."""
    return [line.decode("utf-8") for line in text.encode("utf-8").splitlines()]


def declared_encoding(data: bytes) -> str | None:
    """The encoding that a PEP 263 cookie in the first two lines declares, as it is spelled there.

    `tokenize.detect_encoding` finds it by the same expressions, and says neither how it is spelled nor that there is
    none. It also stops at bytes that are not UTF-8, and reads no file whose lines end with CR.
    """
    for line in _NEWLINE.split(data[:1000], 2)[:2]:
        if match := cookie_re.match(line.decode("ascii", "replace")):
            return match[1]
        if not blank_re.match(line):
            break
    return None


def read_source(data: bytes) -> Source:
    """Decode a Python file as Python does; raises `UnreadableSource`."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise UnreadableSource("NPU902", 1, "the file is UTF-16; Python reads UTF-8 unless a cookie says otherwise")
    bom = b""
    if data.startswith(codecs.BOM_UTF8):
        bom, data = codecs.BOM_UTF8, data[3:]
    if b"\0" in data:
        line = len(_NEWLINE.findall(data[: data.index(b"\0")])) + 1
        raise UnreadableSource("NPU902", line, "the file holds NUL bytes")
    cookie = declared_encoding(data)
    encoding = "utf-8"
    if cookie is not None:
        encoding = _encoding_named(cookie)
        if bom and encoding != "utf-8":
            raise UnreadableSource("NPU902", 1, f"a UTF-8 BOM and the cookie {cookie} contradict each other")
    if encoding in ("utf-8", "ascii"):
        try:
            data.decode(encoding)
        except UnicodeDecodeError as error:
            line = len(_NEWLINE.findall(data[: error.start])) + 1
            subject = "no encoding is declared and the bytes" if cookie is None else "the bytes"
            raise UnreadableSource("NPU902", line, f"{subject} are not {encoding.upper()}") from None
        return Source(data, "utf-8", bom)
    utf8 = _decoded(data, encoding)
    if declared_encoding(utf8) != cookie:
        raise UnreadableSource("NPU902", 1, f"read as {encoding} the file does not declare {encoding}")
    return Source(utf8, encoding)


def _encoding_named(cookie: str) -> str:
    """The name of the encoding that a cookie spells, as Python's tokenizer takes it: Emacs writes `utf-8-unix`."""
    spelled = cookie[:12].lower().replace("_", "-")
    if spelled == "utf-8" or spelled.startswith("utf-8-"):
        return "utf-8"
    if re.match(r"(?:latin-1|iso-8859-1|iso-latin-1)(?:-|\Z)", spelled):
        return "iso8859-1"
    try:
        found = codecs.lookup(cookie)
    except LookupError:
        raise UnreadableSource("NPU902", 1, f"unknown encoding in the cookie: {cookie}") from None
    if found.name in _NO_SOURCE:
        raise UnreadableSource("NPU902", 1, f"{found.name} is no encoding for source code")
    return found.name


def _decoded(data: bytes, encoding: str) -> bytes:
    """The text of bytes in an encoding, as UTF-8; raises `UnreadableSource` where the way back would not end there."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # unicode_escape warns of `\d`
            text = data.decode(encoding)
    except (UnicodeError, LookupError, ValueError) as error:
        raise UnreadableSource("NPU902", 1, f"the bytes do not decode as {encoding}: {error}") from None
    try:
        same, utf8 = text.encode(encoding) == data, text.encode("utf-8")
    except (UnicodeError, ValueError):
        same = False
    if not same:
        raise UnreadableSource("NPU902", 1, f"decoding as {encoding} and encoding again does not give the same bytes")
    return utf8


def splice(utf8: bytes, edits: list[tuple[int, int, bytes]]) -> bytes:
    """Replace byte ranges (start, end, new); they must be sorted and must not overlap."""
    parts: list[bytes] = []
    at = 0
    for start, end, new in edits:
        assert at <= start <= end, "edits overlap"
        parts.append(utf8[at:start])
        parts.append(new)
        at = end
    parts.append(utf8[at:])
    return b"".join(parts)
