"""Python in a document of another language: migrated as a file is, its records as edits and notes of the piece."""

from __future__ import annotations

from dataclasses import replace

from transplt.base.finding import Finding, Status, TokenVerdict
from transplt.base.text.cuda_words import find_tokens
from transplt.edits.edit import Edit, Finds, Kept
from transplt.edits.notes import note_of
from transplt.engine.files.document import Document
from transplt.rules.reasons import CODE_COMMENT


def changes(piece: Document) -> Finds:
    """What a migration does to the piece. One that Python cannot read, or whose edits do not fit, gets none."""
    from transplt.engine.engine import migrate_source  # the editors of other kinds do without it

    # Of its edits all are made, or none: they are a group. A comment has no place in one line.
    settings = replace(piece.settings, picked=None, annotate=False, annotate_edits=False)
    result = migrate_source(piece.utf8, piece.path, settings, piece.project)
    if result.status is not Status.OK:
        return
    alone = b"\n" not in piece.utf8
    edits = [finding.edit for finding in result.findings if finding.edit is not None and finding.applied]
    if alone and any("\n" in edit.after[:-1] for edit in edits):
        return
    group = f"python {piece.path} {hash(piece.utf8)}"
    for finding in result.findings:
        yield _edit(finding, group, alone) if finding.applied else note_of(finding)
    for token in find_tokens(piece.utf8):
        if token.where == "comment":
            yield Kept((token.start, token.end), CODE_COMMENT)
    for row in result.ledger:
        if row.cause.verdict is TokenVerdict.IGNORED and row.cause.reason:
            start = piece.source.line_starts[row.line - 1]
            at = start + len(piece.utf8[start:].decode("utf-8", "replace")[: row.column - 1].encode())
            yield Kept((at, at + len(row.token.encode())), row.cause.reason, row.cause.detail)


def _edit(finding: Finding, group: str, alone: bool) -> Edit:
    """The edit of a record; in a piece of one line what goes in as a line is a statement before the others."""
    assert finding.edit is not None
    extent = (finding.span.start, finding.span.end)
    new, level = finding.edit.after, finding.level
    if alone and new.endswith("\n"):
        new = new.partition("  #")[0].rstrip("\n") + "; "
    return Edit(
        extent, finding.code, finding.message, new, level, finding.api, finding.help, group=group, asked=True
    )
