"""The lines of source around findings, for reports that show them."""

from __future__ import annotations

from collections.abc import Sequence

from transplt.base.finding import Finding
from transplt.base.text.source import Source, UnreadableSource, read_source


def decoded(data: bytes) -> Source:
    """The text of a file; what cannot be decoded shows as replacement characters."""
    try:
        return read_source(data)
    except UnreadableSource:
        utf8 = data.decode("utf-8", "replace").encode("utf-8")
        return Source(utf8)


def frames(source: Source, findings: Sequence[Finding], around: int = 1) -> tuple[tuple[int, str], ...]:
    """(line number, text) of the lines of the findings that are not ignored, and of those around them.

    Of a finding over many lines the first three are taken.
    """
    wanted: set[int] = set()
    for finding in findings:
        if not finding.ignored:
            last = min(finding.span.end_line, finding.span.line + 2)
            wanted.update(range(finding.span.line - around, last + around + 1))
    return tuple((line, source.line_text(line)) for line in sorted(wanted) if 0 < line <= len(source.line_starts))
