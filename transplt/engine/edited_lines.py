"""Where the edits of a file lie in its migrated form."""

from __future__ import annotations

import re
from collections.abc import Iterable

from transplt.base.finding import Finding

#: What ends a line in Python source: form feeds and Unicode separators do not.
_LINE_END = re.compile(r"\r\n|\r|\n")


def edits_in_order(findings: Iterable[Finding]) -> list[Finding]:
    """The applied edits, by place; what goes in at one place stays in its order."""
    return sorted(
        (finding for finding in findings if finding.applied and finding.edit is not None),
        key=lambda finding: (finding.span.start, finding.span.end),
    )


def edited_lines(findings: Iterable[Finding]) -> tuple[int, ...]:
    """The lines of the output, counted from 1, that hold an applied edit. A deletion marks the line it closes up to."""
    lines: set[int] = set()
    shift = 0
    for finding in edits_in_order(findings):
        assert finding.edit is not None
        before = len(_LINE_END.findall(finding.edit.before))
        after = len(_LINE_END.findall(finding.edit.after))
        first = finding.span.line + shift
        # Text that ends with a line end leaves the line after it alone.
        whole = after > 0 and finding.edit.after.endswith(("\n", "\r"))
        lines.update(range(first, first + after + (0 if whole else 1)))
        shift += after - before
    return tuple(sorted(lines))


def output_line(line: int, findings: Iterable[Finding]) -> int:
    """Where line `line` of the input (from 1) stands in the output, for a line that no edit takes away."""
    shift = 0
    for finding in edits_in_order(findings):
        assert finding.edit is not None
        if finding.span.line > line or (finding.span.line == line and not finding.edit.after.endswith(("\n", "\r"))):
            break
        shift += len(_LINE_END.findall(finding.edit.after)) - len(_LINE_END.findall(finding.edit.before))
    return line + shift
