"""Marks around edits: `# npu modify begin: NPU101` above the lines that were edited, `# npu modify end` below them.

As the porting guide marks what it changes by hand. A mark is a comment line of its own, at places where a comment may
stand; edits in adjacent lines have one pair. What stands between marks already, of ours or of somebody else, gets no
second pair.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from transplt.base.text.lexer import lex
from transplt.base.text.source import Source
from transplt.edits.lines import Placed, lead_of
from transplt.engine.annotate import CODE, around, free_line, indentation

_BEGIN, _END = "# npu modify begin", "# npu modify end"
_MARK = re.compile(rb"^[ \t\f]*#+ *npu modify (begin|end)\b", re.M)
#: A first line that the system reads, and the line that names the encoding: both must stay where they are.
_HEADER = re.compile(rb"#!|[ \t\f]*#.*?coding[:=]")

#: Start and end of an edit in the input, and the codes behind it.
Edited = tuple[int, int, Sequence[str]]


def edit_marks(source: Source, edits: Sequence[Edited]) -> tuple[list[Placed], list[Placed]]:
    """The marks above and below what was edited; `edits` are sorted and apart."""
    above: list[Placed] = []
    below: list[Placed] = []
    header, marked = _end_of_header(source), _marked(source)
    for start, end, codes in _regions(source, edits):
        start = max(start, header)
        inside = around([edit[:2] for edit in edits], start) is not None
        if inside or end < start or any(first <= start and end <= last for first, last in marked):
            continue
        indent = indentation(source, start)
        told = " ".join(sorted({*codes}))
        text = f"{indent}{_BEGIN}: {told}{source.newline()}"
        above.append(Placed(start, start, text, CODE, f"mark above the edits of {told}"))
        text = f"{lead_of(source, end)}{indent}{_END}{source.newline()}"
        below.append(Placed(end, end, text, CODE, f"mark below the edits of {told}"))
    return above, below


def _regions(source: Source, edits: Sequence[Edited]) -> list[tuple[int, int, list[str]]]:
    """Whole lines with edits, from the start of the first to behind the last; none touches the next."""
    areas = [(each.start, each.end) for each in lex(source.utf8) if not each.is_comment]
    ranges = [edit[:2] for edit in edits]
    regions: list[tuple[int, int, list[str]]] = []
    for start, end, codes in edits:
        first = source.line_starts[free_line(source, source.position(start)[0], areas, ranges) - 1]
        last = end if end == start == first else _line_below(source, end, areas, ranges)
        if regions and first <= regions[-1][1]:
            first, before, others = regions.pop()
            regions.append((first, max(before, last), [*others, *codes]))
        else:
            regions.append((first, last, [*codes]))
    return regions


def _line_below(source: Source, end: int, areas: Sequence[tuple[int, int]], edits: Sequence[tuple[int, int]]) -> int:
    """Where the nearest line at or behind `end` begins before which a comment line may stand; the file's end."""
    line = source.position(end)[0]
    if source.line_starts[line - 1] < end:
        line += 1
    while line <= len(source.line_starts):
        start = source.line_starts[line - 1]
        if start >= len(source.utf8):
            break
        if free_line(source, line, areas, edits) == line:
            return start
        line += 1
    return len(source.utf8)


def _marked(source: Source) -> list[tuple[int, int]]:
    """From each mark that begins to the one that ends."""
    found: list[tuple[int, int]] = []
    begun: int | None = None
    for match in _MARK.finditer(source.utf8):
        if match[1] == b"begin":
            begun = match.start()
        elif begun is not None:
            found.append((begun, match.end()))
            begun = None
    return found


def _end_of_header(source: Source) -> int:
    end = 0
    for line in (1, 2):
        if line <= len(source.line_starts) and _HEADER.match(source.utf8, source.line_starts[line - 1]):
            end = source.line_starts[line] if line < len(source.line_starts) else len(source.utf8)
    return end
