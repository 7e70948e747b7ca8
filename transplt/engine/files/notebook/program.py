"""The Python of a notebook as one program, and the way of a change in it back to the bytes of the file.

Between two cells stands a comment of its own: what goes in below the last statement of a cell stands above it, what
goes in above the first one of the next cell below it.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from transplt.edits.edit import Extent
from transplt.engine.files.notebook.cells import Cell
from transplt.engine.files.notebook.magics import Masked

#: The line between two cells.
MARK = "# %%"
_BETWEEN = f"{{0}}{MARK}{{0}}{{0}}"
#: No line of a cell is one of the first two, where Python looks for the encoding of a file.
_HEAD = "{0}{0}"
_LINE_END = re.compile(rb"\r\n|\r|\n")
_LINES = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True, slots=True)
class Part:
    """The text of a cell from an offset on, as Python reads it. `fixed`: so many bytes of it must stay at the top."""

    cell: Cell
    begin: int
    utf8: bytes
    fixed: int = 0


@dataclass(frozen=True, slots=True)
class Program:
    """Parts of cells one after the other; `starts` are their offsets in `utf8`, `newline` stands behind each."""

    parts: tuple[Part, ...]
    starts: tuple[int, ...]
    utf8: bytes
    newline: str = ""

    def _part(self, offset: int) -> tuple[Part, int]:
        """The part of an offset, and the offset in it: that behind the end of what stands between two parts."""
        index = max(0, bisect_right(self.starts, offset) - 1)
        return self.parts[index], max(0, offset - self.starts[index])

    def extent(self, start: int, end: int) -> Extent:
        """The bytes of the file that stand for those of the program."""
        part, at = self._part(start)
        place = part.begin + min(at, len(part.utf8))
        first = part.cell.text.start(place) if part.cell.text.utf8 else part.cell.source[0]
        if end <= start:
            return first, first
        part, at = self._part(end - 1)
        return first, max(first, part.cell.text.end(part.begin + min(at + 1, len(part.utf8))) if part.utf8 else first)

    def edit(self, start: int, end: int, new: str, escapes: bool) -> tuple[int, int, str] | None:
        """The bytes of the file to replace, and by what, for a change of the program; None for one over two cells.

        `escapes`: what is no ASCII is escaped. A line that goes into a list of lines becomes one of its literals.
        """
        part, first = self._part(start)
        other, last = self._part(max(start, end - 1))
        last += end > start
        if other is not part or not part.utf8:
            return None
        size = len(part.utf8)
        if first == last and first < part.fixed:
            first = last = part.fixed
        if last > size:  # the line end that the program has behind the cell
            behind = size + len(self.newline)
            if (first not in range(size + 1) and first != behind) or last != behind:
                return None
            first, last, new = _within(part, first, new, self.newline)
        return _in_literals(part, first, last, new, escapes)


def program_of(parts: Sequence[Part]) -> Program:
    """The program of some parts, with the line ends of the first that has one."""
    ends = (_LINE_END.search(part.utf8) for part in parts)
    newline = next((end.group().decode() for end in ends if end), "\n")
    between = _BETWEEN.format(newline).encode()
    utf8 = bytearray(_HEAD.format(newline).encode())
    starts = []
    for part in parts:
        starts.append(len(utf8))
        utf8 += part.utf8 + newline.encode() + between
    return Program(tuple(parts), tuple(starts), bytes(utf8), newline)


def alone(part: Part) -> Program:
    """A part that is a text of its own."""
    return Program((part,), (0,), part.utf8)


def python_part(cell: Cell, found: Masked) -> Part:
    """The part of a cell whose text is Python but for what is masked."""
    top = found.hidden[0][1] if found.hidden and found.hidden[0][0] == 0 and cell.utf8.lstrip()[:2] == b"%%" else 0
    return Part(cell, 0, found.utf8, top)


def _within(part: Part, first: int, new: str, newline: str) -> tuple[int, int, str]:
    """A change that reaches over the line end behind a cell, without it: the cell ends without one, as before."""
    size = len(part.utf8)
    new = new.removesuffix(newline)
    if first > size:
        return size, size, newline + new
    if not new and part.utf8[:first].endswith(newline.encode()):
        first -= len(newline)
    return first, size, new


def _in_literals(part: Part, first: int, last: int, new: str, escapes: bool) -> tuple[int, int, str]:
    """A change of a part as one of the literals that hold its text."""
    text, lines = part.cell.text, part.cell.lines
    first, last = first + part.begin, last + part.begin
    start = text.start(first) if first < len(text.utf8) or not first else text.end(first)
    end = text.end(last) if last > first else start
    if lines is None:
        return start, end, _escaped(new, escapes)
    between = f'"{part.cell.gap}"'
    opened = bisect_left(lines, start - 1, key=lambda line: line[0])
    closed = bisect_left(lines, end + 1, key=lambda line: line[1])
    starts = opened < len(lines) and lines[opened][0] == start - 1
    ends = closed < len(lines) and lines[closed][1] == end + 1
    if not new and last > first and starts and ends:  # they go out, with what parts them from the others
        if closed + 1 < len(lines):
            return lines[opened][0], lines[closed + 1][0], ""
        return lines[opened - 1][1] if opened else lines[0][0], lines[closed][1], ""
    pieces = [_escaped(line, escapes) for line in _LINES.findall(new)] or [""]
    after = between.join(pieces)
    if first == last == len(text.utf8) and text.utf8.endswith(b"\n"):
        after = between + after
    if new.endswith("\n") and not ends:
        after += between
    return start, end, after


def _escaped(text: str, escapes: bool) -> str:
    return json.dumps(text, ensure_ascii=escapes)[1:-1]
