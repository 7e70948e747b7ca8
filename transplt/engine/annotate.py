"""Markers for people: `# TODO(transplt): NPU501 ...` above each line in which something is left to do.

A marker is a comment line of its own, so it changes nothing that runs. It never goes into a string, behind a backslash
or into the middle of an edit, and not above a line that has it already.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence

from transplt.base.finding import Finding
from transplt.base.text.lexer import lex
from transplt.base.text.source import Source
from transplt.edits.lines import Placed

CODE = "NPU407"
MARK = "# TODO(transplt): "
_MARKED = re.compile(rb"[ \t\f]*# TODO\(transplt\): (NPU\d{3})")
_INDENT = re.compile(rb"[ \t]*")
_COOKIE = re.compile(r"coding(?=[:=])")
#: A marker longer than this is cut: the page of its code says the rest.
_LONGEST = 160


def markers(source: Source, findings: Iterable[Finding], edits: Sequence[tuple[int, int, bytes]]) -> list[Placed]:
    """The marker lines for all open findings; `edits` (start, end, new), sorted, are the edits of the output."""
    areas = [(each.start, each.end) for each in lex(source.utf8) if not each.is_comment]
    newline = source.newline()
    ranges = [edit[:2] for edit in edits]
    placed: dict[tuple[int, str], Placed] = {}
    for finding in findings:
        if not finding.open:
            continue
        line = free_line(source, finding.span.line, areas, ranges)
        if (line, finding.code) in placed or finding.code in _marked_above(source, line):
            continue
        start = source.line_starts[line - 1]
        text = f"{indentation(source, start)}{MARK}{_one_line(finding)}{newline}"
        placed[line, finding.code] = Placed(start, start, text, CODE, f"marker for {finding.code}")
    return sorted(placed.values(), key=lambda item: (item.start, item.message))


def indentation(source: Source, start: int) -> str:
    """That of the line which begins at `start`."""
    match = _INDENT.match(source.utf8, start)
    return match.group().decode() if match else ""


def _one_line(finding: Finding) -> str:
    text = " ".join(f"{finding.code} {finding.message}".split())
    if finding.help:
        text += ": " + " ".join(finding.help.split())
    text = _COOKIE.sub("coding ", text.encode("ascii", "backslashreplace").decode())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3].rstrip() + "..."


def free_line(source: Source, line: int, areas: Sequence[tuple[int, int]], edits: Sequence[tuple[int, int]]) -> int:
    """The nearest line at or above `line` before which a comment line may stand."""
    while line > 1:
        start = source.line_starts[line - 1]
        outer = around(areas, start) or around(edits, start)
        if outer is not None:
            line = source.position(outer)[0]
        elif source.line_text(line - 1).endswith("\\") and not source.line_text(line - 1).lstrip().startswith("#"):
            line -= 1
        else:
            return line
    return line


def around(ranges: Sequence[tuple[int, int]], offset: int) -> int | None:
    """Start of the range that `offset` lies inside of; the ranges are sorted and apart."""
    index = bisect_right(ranges, (offset, -1)) - 1
    if index >= 0 and ranges[index][0] < offset < ranges[index][1]:
        return ranges[index][0]
    return None


def _marked_above(source: Source, line: int) -> set[str]:
    """The codes of the markers that stand directly above a line."""
    found = set()
    while line > 1 and (match := _MARKED.match(source.utf8, source.line_starts[line - 2])):
        found.add(match.group(1).decode())
        line -= 1
    return found
