"""What IPython reads in a cell and Python does not: magics, lines for the shell, questions. Masked, so that the rest
of the cell is Python of the same length.

Source: ipython.readthedocs.io, "IPython reference" (the syntax of magics), and IPython.core.inputtransformer2, which
changes a line only where a statement begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from transplt.base.text.source import Source, UnreadableSource
from transplt.edits.edit import Extent
from transplt.syntax.parse import parse

#: Cell magics whose body is Python of the notebook.
_PYTHON_CELLS = frozenset("time timeit capture prun memit mprun lprun heat snakeviz pyinstrument".split())
#: Cell magics whose body is a shell's.
_SHELL_CELLS = frozenset("bash sh ! sx system".split())
_SHELLS = frozenset("bash sh zsh ksh dash".split())
#: Cell magics whose body is a Python program of its own, and those that write a file.
_PROGRAMS = frozenset("python python3 pypy".split())
_FILES = frozenset("writefile file".split())
#: Cell magics whose body is shown.
_TEXTS = frozenset("html HTML javascript js latex markdown svg SVG".split())

_CELL_MAGIC = re.compile(rb"\s*%%(!|[\w.]+)([^\r\n]*)(?:\r?\n|\Z)")
#: A line for IPython where a statement begins; its groups are what comes before, its sign and the rest.
_LINE = re.compile(rb"([ \t]*)(%{1,2}|!{1,2}|\?{1,2})([^\r\n]*)|([ \t]*)[\w.\[\]*]+\?{1,2}[ \t;]*$", re.M)
_ASSIGNED = re.compile(rb"[ \t]*[\w., \t\[\]*]+=[ \t]*([!%])(?!=)([^\r\n]*)")
#: Programs that IPython starts without a sign, by %automagic and aliases.
_BARE = re.compile(
    rb"([ \t]*)(?:pip|conda|cd|ls|ll|mkdir|cat|cp|mv|rm|rmdir|pwd|less|man)(?:[ \t]+[^=(\s,][^\r\n]*)?$", re.M
)
#: Magics of a line: of the shell, those that hold an assignment for it, and those whose rest is a statement.
_SHELL_MAGIC = re.compile(rb"(?:sx|system|pip|conda|mamba|uv)(?=\s)")
_ENV_MAGIC = re.compile(rb"(?:set_)?env[ \t]+(?=\w+=)")
_TIMED = re.compile(rb"(?:time|timeit|prun|memit)[ \t]+(?:-\w+(?:[ \t]+\d+)?[ \t]+)*(?=[\w(\[])")
#: What opens or closes something over several lines.
_PARTS = re.compile(rb"#[^\r\n]*|\"\"\"|'''|[\"']|[()\[\]{}]|\\\r?\n")
_STRING_END = {
    quote: re.compile(rb"\\(?:\r\n|.)|" + quote + (b"" if len(quote) == 3 else rb"|[\r\n]"), re.S)
    for quote in (b'"""', b"'''", b'"', b"'")
}


@dataclass(frozen=True, slots=True)
class Masked:
    """The Python of a cell, as long as the cell; the ranges of it that are a shell's; all that was masked."""

    utf8: bytes
    shell: tuple[Extent, ...] = ()
    hidden: tuple[Extent, ...] = ()


@dataclass(frozen=True, slots=True)
class CellMagic:
    """The magic that a cell begins with: what its body is, where that begins, and the file that it is written to."""

    what: str  # python: of the notebook; program: Python of its own; shell; file; text; other
    body: int
    file: str = ""


def cell_magic(utf8: bytes) -> CellMagic | None:
    """The cell magic of a cell, None where it has none."""
    match = _CELL_MAGIC.match(utf8)
    if match is None:
        return None
    name, words = match.group(1).decode(), match.group(2).decode("utf-8", "replace").split()
    if name in _PYTHON_CELLS:
        return CellMagic("python", match.end())
    if name in _SHELL_CELLS or (name == "script" and _SHELLS & {word.rpartition("/")[2] for word in words[:1]}):
        return CellMagic("shell", match.end())
    if name in _PROGRAMS:
        return CellMagic("program", match.end())
    named = [word.strip("\"'") for word in words if not word.startswith("-")]
    if name in _FILES and len(named) == 1:
        return CellMagic("file", match.end(), named[0])
    return CellMagic("text" if name in _TEXTS else "other", match.end())


def masked(utf8: bytes) -> Masked | None:
    """The Python of a cell; None for a cell that is none, whatever is masked."""
    if not refused(utf8):
        return Masked(utf8)
    for whole in (False, True):
        found = _mask(utf8, whole)
        if found.hidden and not refused(found.utf8):
            return found
    return None


def refused(utf8: bytes) -> str:
    """Why Python does not read a text; empty where it does."""
    if b"\0" in utf8:
        return "it holds NUL bytes"
    try:
        parse(Source(utf8))
    except UnreadableSource as error:
        return f"line {error.line}: {error.reason}"
    return ""


def _mask(utf8: bytes, whole: bool) -> Masked:
    """The cell with its magics masked; `whole`: with the statements that some of them time."""
    new = bytearray(utf8)
    shell: list[Extent] = []
    hidden: list[Extent] = []
    begin = 0
    if (magic := cell_magic(utf8)) is not None:
        hidden.append((0, magic.body))
        begin = magic.body
    for start, end, sign in _foreign(utf8, begin):
        rest = utf8[start + len(sign) : end]
        at = start + len(sign)
        timed = _TIMED.match(rest) if sign == b"%" and not whole else None
        if timed is not None:
            hidden.append((start, at + timed.end()))
            new[start : at + timed.end()] = b"_" * (at + timed.end() - start - 1) + b";"
            continue
        if sign in (b"!", b"!!", b"") or (sign == b"%" and _SHELL_MAGIC.match(rest)):
            shell.append((at, end))
        elif sign == b"%" and (env := _ENV_MAGIC.match(rest)):
            shell.append((at + env.end(), end))
        hidden.append((start, end))
        _hide(new, utf8, start, end)
    if magic is not None:
        _blank(new, 0, magic.body)
    return Masked(bytes(new), tuple(shell), tuple(hidden))


def _hide(new: bytearray, utf8: bytes, start: int, end: int) -> None:
    """A comment in the place of a line that begins with the magic, a name in the place of one that is indented."""
    line = max(utf8.rfind(b"\n", 0, start), utf8.rfind(b"\r", 0, start)) + 1
    if line == start:
        _blank(new, start, end)
        return
    first = next((at for at in range(start, end) if utf8[at] in b"\r\n"), end)
    new[start:first] = b"_" * (first - start)
    _blank(new, first, end)


def _blank(new: bytearray, start: int, end: int) -> None:
    """Comments in the place of whole lines."""
    at = start
    while at < end:
        stop = next((place for place in range(at, end) if new[place] in b"\r\n"), end)
        if stop > at:
            new[at:stop] = b"#" + b" " * (stop - at - 1)
        at = stop + 1


def _foreign(utf8: bytes, begin: int) -> Iterator[tuple[int, int, bytes]]:
    """(start, end, sign) of what IPython reads for itself where a statement begins; end without the line end."""
    at, depth, joined = begin, 0, False
    while at < len(utf8):
        if depth == 0 and not joined and (found := _at(utf8, at)) is not None:
            start, end, sign = found
            while utf8[end - 1 : end] == b"\\" and (stop := re.compile(rb"\r?\n[^\r\n]*").match(utf8, end)):
                end = stop.end()
            yield start, end, sign
            at = _next_line(utf8, end)
            joined = False
            continue
        at, depth, joined = _past_line(utf8, at, depth)


def _at(utf8: bytes, at: int) -> tuple[int, int, bytes] | None:
    """What begins in the line at an offset."""
    if (match := _LINE.match(utf8, at)) is not None:
        if match.group(2) is None:
            return match.end(4), match.end(), b"?"
        return match.end(1), match.end(), match.group(2)
    if (match := _ASSIGNED.match(utf8, at)) is not None:
        return match.start(1), match.end(), match.group(1)
    if (match := _BARE.match(utf8, at)) is not None:
        return match.end(1), match.end(), b""
    return None


def _past_line(utf8: bytes, at: int, depth: int) -> tuple[int, int, bool]:
    """Behind the line at an offset, or behind the string that goes on over its end; the brackets that are open then,
    and whether the next line belongs to this one.
    """
    end = _next_line(utf8, at)
    while (match := _PARTS.search(utf8, at, end)) is not None:
        part, at = match.group(), match.end()
        if part in _STRING_END:
            at = _string_end(utf8, at, part)
            end = max(end, _next_line(utf8, max(at - 1, 0)) if at > end else end)
        elif part in (b"(", b"[", b"{"):
            depth += 1
        elif part in (b")", b"]", b"}"):
            depth = max(0, depth - 1)
        elif part[:1] == b"\\":
            return end, depth, True
    return end, depth, False


def _string_end(utf8: bytes, at: int, quote: bytes) -> int:
    while (match := _STRING_END[quote].search(utf8, at)) is not None:
        if match.group() == quote:
            return match.end()
        if match.group() in (b"\r", b"\n"):
            return match.start()
        at = match.end()
    return len(utf8)


def _next_line(utf8: bytes, at: int) -> int:
    end = utf8.find(b"\n", at)
    return len(utf8) if end < 0 else end + 1
