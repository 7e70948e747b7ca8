"""What the cells of a notebook are: the program that they make together, programs of their own, shell, and the rest."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from functools import lru_cache

from transplt.engine.files.kind import FileKind, kind_of
from transplt.engine.files.notebook.cells import Cell, Notebook, read_notebook
from transplt.engine.files.notebook.magics import cell_magic, masked, refused
from transplt.engine.files.notebook.program import Part, Program, alone, program_of, python_part

_PYTHON = ("python", "ipython")


@dataclass(frozen=True, slots=True)
class Piece:
    """A text of its own: its kind, and the name of the file that a cell writes it to; empty for others."""

    program: Program
    kind: FileKind
    file: str = ""


@dataclass(slots=True)
class Layout:
    """The parts of a notebook: `program` is its Python; `pieces` are texts of their own; `left` parts that nobody
    reads; `unread` cells of Python that are none, and why; `shown` cells that are there to be read.
    """

    book: Notebook
    program: Program
    pieces: list[Piece] = field(default_factory=list)
    left: list[Part] = field(default_factory=list)
    unread: list[tuple[Cell, str]] = field(default_factory=list)
    shown: list[Cell] = field(default_factory=list)


@lru_cache(maxsize=2)
def layout_of(utf8: bytes) -> Layout | None:
    """The layout of a notebook; None for one of another language. UnreadableNotebook for what is none."""
    book = read_notebook(utf8)
    if not book.language.startswith(_PYTHON):
        return None
    found = Layout(book, program_of(()))
    parts = [part for cell in book.cells if (part := _sorted_in(found, cell)) is not None]
    found.program = program_of(parts)
    return found


def _sorted_in(found: Layout, cell: Cell) -> Part | None:
    """The part of a cell in the program; what else is in it goes to the other lists."""
    utf8 = cell.utf8
    if cell.kind != "code":
        found.shown.append(cell)
        return None
    if cell.language and not cell.language.startswith(_PYTHON):
        found.left.append(Part(cell, 0, utf8))
        return None
    magic = cell_magic(utf8)
    if magic is None or magic.what == "python":
        return _python(found, cell)
    body = Part(cell, magic.body, utf8[magic.body :])
    if magic.what == "shell":
        found.pieces.append(Piece(alone(body), FileKind.SHELL))
    elif magic.what == "program" or magic.file.endswith(".py"):
        if why := refused(body.utf8):
            found.unread.append((cell, why))
        else:
            found.pieces.append(Piece(alone(body), FileKind.PYTHON, magic.file))
    elif magic.what == "file":
        found.pieces.append(Piece(alone(body), kind_of(magic.file, body.utf8), magic.file))
    elif magic.what == "text":
        found.shown.append(cell)
    else:
        found.left.append(Part(cell, 0, utf8))
    return None


def _python(found: Layout, cell: Cell) -> Part | None:
    utf8 = cell.utf8
    code = masked(utf8)
    if code is None:
        found.unread.append((cell, refused(utf8)))
        return None
    for start, end in code.hidden:
        inner = code.shell[bisect_left(code.shell, (start,)) : bisect_left(code.shell, (end, end + 1))]
        found.pieces += [Piece(alone(Part(cell, *_cut(utf8, extent))), FileKind.SHELL) for extent in inner]
        if not inner:
            found.left.append(Part(cell, *_cut(utf8, (start, end))))
    return python_part(cell, code)


def _cut(utf8: bytes, extent: tuple[int, int]) -> tuple[int, bytes]:
    return extent[0], utf8[extent[0] : extent[1]]
