"""A note and the finding that stands for it in the reports."""

from __future__ import annotations

from transplt.base.finding import Finding
from transplt.base.text.source import Source
from transplt.edits.edit import Note


def finding_of(source: Source, path: str, note: Note, ignored: str = "") -> Finding:
    """A note as a finding of the file; `ignored`: why its code is not wanted there, where the note gives no reason."""
    return Finding(
        path=path,
        span=source.span(*note.extent),
        code=note.code,
        level=note.level,
        message=note.message,
        api=note.api,
        effort=note.effort,
        help=note.help,
        ignored=note.ignored or ignored,
        blocks=note.blocks,
        adaptor=note.adaptor,
        details=note.details,
    )


def note_of(finding: Finding) -> Note:
    """The other way: a finding without an edit, as a note about its byte range."""
    extent = (finding.span.start, finding.span.end)
    rest = (finding.code, finding.level, finding.message, finding.api, finding.help, finding.effort, finding.ignored)
    return Note(extent, *rest, finding.blocks, finding.adaptor, finding.details)
