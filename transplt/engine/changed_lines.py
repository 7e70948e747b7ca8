"""A check of changed lines: what is found and edited elsewhere in a file is as if it had not been seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from transplt.base.finding import FileResult, Finding, Status
from transplt.edits.edit import Beside, Edit
from transplt.edits.work import Work

_Lines = Sequence[tuple[int, int]]


def leave_other_lines(work: Work, lines: _Lines) -> None:
    """Take out the edits of other lines, with all that stands and falls with one of them.

    Where an import gets another name, its uses lie anywhere: then it is all of the file, or none.
    """
    away = [edit for edit in work.edits if not touches(lines, *_place(work, edit))]
    groups = {edit.group for edit in away if edit.group}
    gone = {id(edit) for edit in work.edits if edit.group in groups} | {id(edit) for edit in away}
    if gone and work.renamed:
        gone = {id(edit) for edit in work.edits}
    for edit in work.edits:
        if id(edit) in gone and edit.rewrites and touches(lines, *_place(work, edit)):
            message = f"{edit.message}: this needs edits of unchanged lines"
            work.add(work.note(edit.node, edit.code, message, api=edit.api, help="run --fix without --since"))
    work.withdraw_edits(lambda edit: id(edit) in gone)
    work.withdraw_notes(lambda note: not touches(lines, *(work.source.position(at)[0] for at in note.extent)))


def in_lines(result: FileResult, lines: _Lines) -> FileResult:
    """The result with the findings of these lines; an import that their edits need stands elsewhere."""
    if result.status is not Status.OK:
        return result
    kept = [
        each
        for each in result.findings
        if each.applied or touches(lines, each.span.line, each.span.end_line)  # applied: also an import for an edit
    ]
    return replace(result, findings=tuple(sorted(kept, key=Finding.sort_key)))


def _place(work: Work, edit: Edit) -> tuple[int, int]:
    if edit.rewrites:
        return edit.node.lineno, edit.node.end_lineno or edit.node.lineno
    if isinstance(edit.where, Beside):
        return edit.where.node.lineno, edit.where.node.lineno
    if isinstance(edit.where, tuple):
        return work.source.position(edit.where[0])[0], work.source.position(edit.where[1])[0]
    return 0, 0


def touches(lines: _Lines, first: int, last: int) -> bool:
    """True when one of `lines` (first, last) lies among the lines from `first` to `last`."""
    return any(start <= last and first <= end for start, end in lines)
