"""A piece of a document in another language: what the editors of that language find, at the places of the document.

A here-document in a shell script, a step of a workflow, a block of code in a text: `in_piece` asks the editors of the
piece's kind about its bytes alone; `in_lines` does so for a piece whose lines stand behind something that is no part
of it (the indentation of a YAML block, the prompt of a console). Python goes through the engine that migrates files.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

from transplt.base.text.source import Source
from transplt.edits.edit import Edit, Extent, Finds, Found, extent_of
from transplt.engine.files.document import Document
from transplt.engine.files.editors import editors_of
from transplt.engine.files.kind import FileKind


def in_piece(document: Document, start: int, end: int, kind: FileKind) -> Finds:
    """What the editors of `kind` find in the bytes from `start` up to `end`, with the offsets of the whole document.

    The bytes must be the piece as its language reads it: without quotes that are doubled and without escapes.
    """
    yield from in_lines(document, [(start, end)], kind)


def in_lines(document: Document, extents: Sequence[Extent], kind: FileKind) -> Finds:
    """The same for a piece that is made of several byte ranges, in order, such as lines without their indentation.

    Further lines of an edit get the indentation of the line in which it begins. An edit that reaches over what parts
    two ranges is left out, with all of its group, and one of further lines behind something else than indentation.
    """
    found = list(_changes_of(_piece(document, extents, kind)))
    places = _Places(extents)
    moved = [(each, _moved(document, each, places, len(extents) > 1)) for each in found]
    lost = {_group(each) for each, new in moved if new is None}
    yield from (new for each, new in moved if new is not None and _group(each) not in lost)


def reads(document: Document, extents: Sequence[Extent], kind: FileKind) -> bool:
    """True for a piece that its language's grammar reads without an error."""
    if kind is not FileKind.SHELL:
        return True
    from transplt.engine.files.shell.script import errors

    return errors(_piece(document, extents, kind)) == 0


def _piece(document: Document, extents: Sequence[Extent], kind: FileKind) -> Document:
    utf8 = b"".join(document.utf8[start:end] for start, end in extents)
    host = document.host or document.kind
    return replace(document, source=Source(utf8), kind=kind, host=host)


def _changes_of(piece: Document) -> Finds:
    if piece.kind is FileKind.PYTHON:
        from transplt.engine.files.python_piece import changes

        yield from changes(piece)
        return
    for editor in editors_of(piece):
        yield from editor.changes(piece)


def _group(found: Found) -> str:
    return (isinstance(found, Edit) and found.group) or str(id(found))


def _moved(document: Document, found: Found, places: _Places, parted: bool) -> Found | None:
    """What was found, at its place in the document; None for an edit that cannot be made there."""
    extent = extent_of(found)
    if not isinstance(found, Edit):
        return replace(found, extent=places.around(extent))
    where = places.of(extent)
    if where is None or not parted or "\n" not in str(found.new):
        return None if where is None else replace(found, where=where)
    utf8 = document.utf8
    before = utf8[utf8.rfind(b"\n", 0, where[0]) + 1 : places.start(extent[0])]
    if before.strip():
        return None
    return replace(found, where=where, new=str(found.new).replace("\n", "\n" + before.decode()))


class _Places:
    """Where the bytes of a piece stand in its document."""

    def __init__(self, extents: Sequence[Extent]) -> None:
        self.extents = list(extents)
        self.starts: list[int] = []  # of each range, in the piece
        at = 0
        for start, end in self.extents:
            self.starts.append(at)
            at += end - start

    def of(self, extent: Extent) -> Extent | None:
        """The bytes of the document that are those of the piece; None where something stands between them."""
        start, end = self.around(extent)
        return (start, end) if end - start == extent[1] - extent[0] else None

    def around(self, extent: Extent) -> Extent:
        """From the first to the last byte, whatever stands between them."""
        start, end = extent
        first = self._at(start)
        return first, max(first, self._at(end - 1) + 1) if end > start else first

    def start(self, offset: int) -> int:
        """Where the range begins that holds a byte of the piece."""
        return self.extents[max(0, bisect_right(self.starts, offset) - 1)][0] if self.extents else 0

    def _at(self, offset: int) -> int:
        index = max(0, bisect_right(self.starts, offset) - 1)
        return self.extents[index][0] + offset - self.starts[index] if self.extents else 0
