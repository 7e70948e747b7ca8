"""The edits of a file that is not Python: made, checked, and recorded as those of a Python file are."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from transplt.base.finding import ON_REQUEST, Effort, Finding, Level, Operation, Replacement
from transplt.base.plan_decisions import NOT_PICKED
from transplt.base.text.ignore_comments import IgnoreComment, ignore_comments, switched_off
from transplt.base.text.source import Source, splice
from transplt.edits.edit import Edit, Extent, Kept, Note, extent_of, spliced_by
from transplt.edits.notes import finding_of
from transplt.engine.changed_lines import touches
from transplt.engine.files.document import Document
from transplt.engine.files.editors import editors_of
from transplt.engine.files.kind import FileKind

_LINE_END = re.compile(rb"\n")


@dataclass(slots=True)
class Rewritten:
    """What the editors of a file come to: its new text, the records of edits and notes, and the words that stay."""

    utf8: bytes
    findings: list[Finding] = field(default_factory=list)
    spliced: list[tuple[int, int, bytes]] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)


def rewritten(document: Document) -> Rewritten:
    """The document with its edits. What would not hold is taken back, and reported."""
    result = Rewritten(document.utf8)
    wanted: list[Edit] = []
    switched_off = _SwitchedOff(document)
    for found in _changes_of(document):
        if isinstance(found, Kept):
            result.kept.append(found)
        elif isinstance(found, Note):
            ignored = switched_off(found.code, found.extent)
            result.findings.append(finding_of(document.source, document.path, found, ignored))
        elif (reason := switched_off(found.code, extent_of(found))) or not _applies(document, found):
            result.findings.append(_offered(document, found, reason))
        else:
            wanted.append(found)
    wanted, unpicked = _picked(document, _apart(wanted))
    result.findings += [replace(_offered(document, edit, ""), help=NOT_PICKED) for edit in unpicked]
    if not wanted:
        return result
    spliced = spliced_by(wanted)
    changed = replace(document, source=Source(splice(document.utf8, spliced), bom=document.source.bom))
    if why := _broken(document, changed):
        result.findings += [
            replace(
                _record(document, edit), code="NPU992", level=Level.MANUAL, message=f"undone: {edit.message} ({why})",
                effort=Effort.LOW, help="change this place by hand",
            )
            for edit in wanted
        ]  # fmt: skip
        return result
    result.utf8, result.spliced = changed.utf8, spliced
    for edit in wanted:
        before, after = document.source.slice(*extent_of(edit)), str(edit.new)
        operation = Operation.INSERT if not before else Operation.MODIFY if after else Operation.DELETE
        done = Replacement(operation, before, after)
        result.findings.append(replace(_record(document, edit), edit=done, applied=True))
    return result


def _changes_of(document: Document) -> list[Edit | Note | Kept]:
    return [found for editor in editors_of(document) for found in editor.changes(document)]


def _applies(document: Document, edit: Edit) -> bool:
    lines = document.settings.only_lines
    if lines is not None:
        first, last = (document.source.position(at)[0] for at in extent_of(edit))
        if not touches(dict(lines).get(document.path, ()), first, last):
            return False
    return edit.level is Level.SAFE or edit.asked or (edit.level is Level.UNSAFE and document.settings.unsafe_fixes)


class _SwitchedOff:
    """What the settings and the comments of a document switch off; a line of 8,000 commands is read once."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._codes = document.settings.ignored_codes(document.path)
        self._ends: list[int] = []
        self._comments: dict[tuple[int, int], list[IgnoreComment]] = {}

    def __call__(self, code: str, extent: Extent) -> str:
        """Why a code is not wanted in a place; empty when it is."""
        if self._document.kind is FileKind.NOTEBOOK:  # a line may hold many of a cell, whose code has the comments
            return switched_off(code, self._codes, ())
        lines = self._lines(extent)
        if lines not in self._comments:
            self._comments[lines] = list(ignore_comments(self._document.utf8[slice(*lines)]))
        return switched_off(code, self._codes, self._comments[lines])

    def _lines(self, extent: Extent) -> Extent:
        """From where to where the lines go in which a place stands."""
        utf8 = self._document.utf8
        if not self._ends:
            self._ends = [*(end.start() for end in _LINE_END.finditer(utf8)), len(utf8)]
        first = bisect_left(self._ends, extent[0])
        return self._ends[first - 1] + 1 if first else 0, self._ends[bisect_left(self._ends, extent[1])]


def _apart(edits: Sequence[Edit]) -> list[Edit]:
    """Edits in the order of their places, without those in bytes that an earlier editor changes, and their groups."""
    taken: list[Extent] = []  # sorted, and none reaches into another
    lost: set[str] = set()
    for edit in edits:
        start, end = extent_of(edit)
        at = bisect_left(taken, (start, end))
        if (at and taken[at - 1][1] > start) or (at < len(taken) and taken[at][0] < end):
            lost.add(edit.group or str(id(edit)))
        else:
            taken.insert(at, (start, end))
    kept = [edit for edit in edits if (edit.group or str(id(edit))) not in lost]
    return sorted(kept, key=extent_of)


def _picked(document: Document, edits: list[Edit]) -> tuple[list[Edit], list[Edit]]:
    """The edits that are made, with the groups of those that somebody picks, and the others."""
    if document.settings.picked is None:
        return edits, []
    picked = [edit for edit in edits if document.settings.picks(document.path, *extent_of(edit))]
    groups = {edit.group for edit in picked if edit.group}
    made = [edit for edit in edits if edit in picked or edit.group in groups]
    return made, [edit for edit in edits if edit not in made]


def _broken(document: Document, changed: Document) -> str:
    """Why the changed text must not be written, empty when it may be."""
    for editor in editors_of(document):
        broken = getattr(editor, "broken", None)
        if broken is not None and (why := broken(document, changed)):
            return str(why)
    if not document.settings.whole:
        return ""
    settings = replace(document.settings.without_themes(), user_rules=())
    changed = replace(changed, settings=settings)
    switched_off = _SwitchedOff(changed)
    for found in _changes_of(changed):
        if isinstance(found, Edit) and _applies(changed, found) and not switched_off(found.code, extent_of(found)):
            return f"a second run would change it again: {found.message}"
    return ""


def _record(document: Document, edit: Edit) -> Finding:
    return Finding(
        path=document.path,
        span=document.source.span(*extent_of(edit)),
        code=edit.code,
        level=edit.level,
        message=edit.message,
        api=edit.api,
        help=edit.help,
    )


def _offered(document: Document, edit: Edit, reason: str) -> Finding:
    help_ = edit.help or ON_REQUEST
    return replace(_record(document, edit), ignored=reason, effort=edit.effort or Effort.LOW, help=help_)
