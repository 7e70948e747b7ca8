"""Some of the edits of a file, picked by the byte ranges that they have when all are made: the others are left."""

from __future__ import annotations

from dataclasses import replace

from transplt.base.finding import Effort, FileResult, Level
from transplt.base.plan_decisions import NOT_PICKED
from transplt.base.settings import Settings
from transplt.edits.edit import Beside, Edit, Note
from transplt.edits.ignores import Ignores
from transplt.edits.lines import alone
from transplt.edits.work import Work
from transplt.engine.edit_outcome import Outcome
from transplt.engine.verify import applies, what_holds


def leave_unpicked(work: Work) -> None:
    """Take out all edits but the picked ones, and those that stand or fall with one of them: of its group, or of the
    same piece of text. Where an import gets another name, its uses lie anywhere: then it is all of the file, or none.
    """
    if work.settings.picked is None:
        return  # all are wanted
    ignores = Ignores(work)
    edits = [edit for edit in work.edits if not ignores.drop(edit)]
    possible = [edit for edit in edits if applies(edit, work.settings) or not edit.rewrites]
    outcome, _ = what_holds(work, possible)
    made = _together(outcome, possible, _picked(work, outcome, possible))
    if made and work.renamed:
        made = {id(edit) for edit in possible}
    planned = {id(edit) for edit in possible}
    for edit in possible:
        if id(edit) not in made and edit.rewrites:
            extent = work.source.extent(edit.node)
            work.add(Note(extent, edit.code, Level.MANUAL, edit.message, edit.api, NOT_PICKED, Effort.LOW))
    work.withdraw_edits(lambda edit: id(edit) in planned and id(edit) not in made)


def all_or_none(result: FileResult, data: bytes, settings: Settings) -> FileResult:
    """The result of a file that Python reads only once all its edits are made: as it is where one is picked, else that
    of the file with the bytes `data` as they are.
    """
    if any(each.applied and settings.picks(result.path, each.span.start, each.span.end) for each in result.findings):
        return result
    left = [
        replace(each, level=Level.MANUAL, edit=None, applied=False, help=NOT_PICKED, effort=Effort.LOW)
        if each.applied else each
        for each in result.findings
    ]  # fmt: skip
    return replace(result, data=data, findings=tuple(left), changed=False)


def _picked(work: Work, outcome: Outcome, edits: list[Edit]) -> set[int]:
    """The ids of the edits that change or insert something in a range that is picked."""

    def wanted(start: int, end: int) -> bool:
        return work.settings.picks(work.scan.path, start, end)

    found = {id(edit) for piece in outcome.pieces if wanted(piece.start, piece.end) for edit in piece.edits}
    groups = {line.group for line in outcome.lines if line.group and wanted(line.start, line.end)}
    for edit in edits:
        if isinstance(edit.where, tuple):
            chosen = wanted(*edit.where)
        elif isinstance(edit.where, Beside) and not edit.group:
            line = alone(work.source, edit)
            chosen = wanted(line.start, line.end)
        else:
            chosen = edit.group in groups
        if chosen:
            found.add(id(edit))
    return found


def _together(outcome: Outcome, edits: list[Edit], made: set[int]) -> set[int]:
    """The ids `made`, with those of all edits that go with one of them."""
    parts = [{id(edit) for edit in piece.edits} for piece in outcome.pieces if len(piece.edits) > 1]
    by_group: dict[str, set[int]] = {}
    for edit in edits:
        if edit.group:
            by_group.setdefault(edit.group, set()).add(id(edit))
    parts += by_group.values()
    while more := [part for part in parts if part & made and not part <= made]:
        made = made.union(*more)
    return made
