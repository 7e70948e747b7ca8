"""The editor of notebooks: their Python goes through the engine as one program, their shell to the editors of shell."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from transplt.base.finding import Cause, Effort, Level, TokenVerdict
from transplt.base.text.cuda_words import WORD
from transplt.base.text.source import Source, splice
from transplt.edits.edit import Edit, Extent, Finds, Found, Kept, Note, extent_of, spliced_by
from transplt.edits.notes import note_of
from transplt.engine.files import python_piece
from transplt.engine.files.document import Document
from transplt.engine.files.editors import editors_of
from transplt.engine.files.gpu_words import gpu_word_findings
from transplt.engine.files.kind import FileKind
from transplt.engine.files.notebook.cells import UnreadableNotebook
from transplt.engine.files.notebook.layout import Layout, Piece, layout_of
from transplt.engine.files.notebook.program import Program, alone
from transplt.engine.files.tokens import scan_other_file

UNREAD = "NPU830"
_MASKS = re.compile(rb"_+|#+ *")
_MASKED_LINES = re.compile(rb"^_(?:\r\n|\r|\n)", re.M)
#: Tunings of single lines, which need no program around them.
_IN_CELLS = ("masked-assignment",)
_REPORTED = Cause(TokenVerdict.MANUAL)


def changes(document: Document) -> Finds:
    """What becomes of the cells of a notebook; one of another language than Python stays, with its findings."""
    try:
        layout = layout_of(document.utf8)
    except UnreadableNotebook as error:
        if not document.utf8.strip():
            return
        yield _unread((0, 0), f"the notebook could not be parsed: {error}")
        return
    if layout is None:
        return
    for cell, why in layout.unread:
        if WORD.search(cell.utf8.lower()):
            yield _unread(cell.source, f"the cell is not Python: {why}")
    pieces = [Piece(layout.program, FileKind.PYTHON)] if layout.program.parts else []
    by_program = [(each.program, _changes_of(_piece(document, each))) for each in (*pieces, *layout.pieces)]
    edits = _edits(document, layout, by_program)
    yield from edits or ()
    for program, found in by_program:
        if edits is None:
            found = [_by_hand(each) if isinstance(each, Edit) else each for each in found]
        yield from _moved(program, found)
    for part in layout.left:
        program = alone(part)
        yield from _moved(program, _other_words(_piece(document, Piece(program, FileKind.NOTEBOOK)), []))
    yield from _around(document, layout)


def broken(document: Document, changed: Document) -> str:
    """Why the changed notebook must not be written: all but the texts of its cells is what it was."""
    try:
        before, after = json.loads(document.utf8), json.loads(changed.utf8)
        layout_of(changed.utf8)
    except (ValueError, RecursionError, UnreadableNotebook) as error:
        return f"the notebook could not be parsed: {error}"
    return "" if _without_texts(before) == _without_texts(after) else "more than its cells would change"


def _without_texts(data: Any) -> Any:
    sheets = data.get("worksheets") or [data]
    for cell in sheets[0]["cells"]:
        if cell.get("cell_type") == "code":
            cell.pop("source" if "source" in cell else "input", None)
    return data


def _piece(document: Document, piece: Piece) -> Document:
    """A piece as a document of its own. Lines are those of the file: what belongs to them is decided there."""
    settings = replace(document.settings.without_themes(*_IN_CELLS), only_lines=None, picked=None)
    utf8 = piece.program.utf8
    path = document.path
    if piece.file:
        path = f"{path.rpartition('/')[0]}/{piece.file}".lstrip("/")
    source = Source(utf8)
    return replace(document, source=source, kind=piece.kind, path=path, settings=settings)


def _changes_of(piece: Document) -> list[Found]:
    """The edits and findings of a program or a piece."""
    if piece.kind is FileKind.PYTHON:
        return list(python_piece.changes(piece))
    editors = list(editors_of(piece))
    found = [each for editor in editors for each in editor.changes(piece)]
    edits = [each for each in found if isinstance(each, Edit)]
    if edits:
        utf8 = splice(piece.utf8, spliced_by(edits))
        changed = replace(piece, source=Source(utf8))
        if any(broken(piece, changed) for each in editors if (broken := getattr(each, "broken", None))):
            found = [_by_hand(each) if isinstance(each, Edit) else each for each in found]
    return [*found, *_other_words(piece, found)]


def _edits(document: Document, layout: Layout, by_program: Sequence[tuple[Program, list[Found]]]) -> list[Edit] | None:
    """The edits in the file; None where the cells would not hold then what the programs hold."""
    moved, wanted = [], []
    for program, found in by_program:
        edits = [each for each in found if isinstance(each, Edit)]
        for edit in edits:
            place = program.edit(*extent_of(edit), str(edit.new), layout.book.escapes)
            if place is None:
                return None
            moved.append(replace(edit, where=place[:2], new=place[2]))
        wanted.append(splice(program.utf8, spliced_by(edits)))
    if not moved:
        return []
    try:
        after = layout_of(splice(document.utf8, spliced_by(moved)))
    except UnreadableNotebook:
        return None
    texts = [] if after is None else [after.program.utf8, *(each.program.utf8 for each in after.pieces)]
    texts = texts[0 if layout.program.parts else 1 :]
    return moved if list(map(_alike, wanted)) == list(map(_alike, texts)) else None


def _alike(utf8: bytes) -> bytes:
    """A program without what is masked in it: a line for the shell may have grown or be a comment now, and what goes
    above the magic of a cell stands below it.
    """
    return _MASKED_LINES.sub(b"", _MASKS.sub(b"_", utf8))


def _moved(program: Program, found: Iterable[Found]) -> Finds:
    yield from (replace(each, extent=program.extent(*each.extent)) for each in found if not isinstance(each, Edit))


def _by_hand(edit: Edit) -> Note:
    help_ = "change the cell by hand, and report it as a defect of transplt"
    message = f"could not be written into the cells: {edit.message}"
    return Note(extent_of(edit), "NPU990", Level.MANUAL, message, edit.api, help_, Effort.LOW)


def _other_words(piece: Document, found: list[Found]) -> Iterator[Found]:
    """The findings of a text for the words that its editors do not speak of."""
    known = [extent_of(each) for each in found]

    def cause(start: int, end: int) -> Cause | None:
        return _REPORTED if any(first <= start and end <= last for first, last in known) else None

    kind = piece.kind if piece.kind is not FileKind.BINARY else FileKind.NOTEBOOK
    tokens = scan_other_file(piece.utf8, piece.path, kind, piece.target, known=cause).findings
    for each in tokens:
        yield note_of(replace(each, message=each.message.replace("a shell script names", "a shell line names")))
    lines = {each.span.line for each in tokens}
    for each in gpu_word_findings(piece.utf8, piece.path, piece.kind, piece.settings.pins):
        if each.span.line not in lines and cause(each.span.start, each.span.end) is None:
            yield note_of(each)


def _unread(extent: Extent, message: str) -> Note:
    help_ = "the cell is not changed: fix it and run transplt again"
    return Note(extent, UNREAD, Level.MANUAL, message, help=help_, effort=Effort.LOW)


def _around(document: Document, layout: Layout) -> Iterator[Kept]:
    """The rest of the file; findings on a place in it come first."""
    yield Kept((0, len(document.utf8)), "notebook-data")
    shown = {each.number for each in layout.shown}
    unread = {cell.number for cell, _ in layout.unread}
    for cell in layout.book.cells:
        yield Kept(cell.extent, "notebook-output")
        if cell.number not in unread:
            yield Kept(cell.source, "notebook-text" if cell.number in shown else "notebook-code")
