"""What a fixer yields: an edit, a note about a place, or a reason why words of CUDA stay."""

from __future__ import annotations

import ast
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from transplt.base.finding import Effort, Level
from transplt.edits.trees.transform import New

_T = TypeVar("_T")

#: A byte range of the source: the offsets of its first byte and of the one behind its last.
Extent = tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Beside:
    """Lines of their own beside a statement, at its indentation, outside of what is put around that statement there.

    `above_comments`: above the comments right above the statement too. `apart`: with an empty line between.
    `verbatim_from`: the line (from 0) from which on they are a text of the file's own, of which only the first line
    gets the indentation; -1 for none. `called`: names that the lines define; they go in once, whatever groups
    ask for them, and only where other code that is written holds one.
    """

    node: ast.stmt
    below: bool = False
    above_comments: bool = False
    apart: bool = False
    verbatim_from: int = -1
    called: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Around:
    """A header (`if ...:`) above neighbouring statements, which move one level in; `begins` are lines between both."""

    first: ast.stmt
    last: ast.stmt
    begins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AtTop:
    """An import among the others at the top of the file, unless another edit has asked for the same line.

    `called`: it is the one of the project's own module with the functions of the port, which goes below all others, and
    only where what is written holds this text, or `always`.
    """

    called: str = ""
    always: bool = False


#: What an edit changes. A node gets the text that its transform makes; a byte range gets another text.
Where = ast.expr | ast.stmt | ast.arg | Extent | Beside | Around | AtTop


@dataclass(slots=True, eq=False)
class Edit:
    """One change of a file: at `where`, `new` stands there then (for lines: the lines, without indentation).

    `group`: all edits of one name are applied together, or taken back together when the output does not hold. `asked`:
    an option of its own asked for an unsafe edit. `writes_npu`: the output needs `import torch_npu`; `imports` are
    further modules it needs, `constants` statements it needs below the imports. `holes` are operands that the
    transform leaves as they are; it gets to see all others then. `apart`: of the pieces that the edits of one node
    change, its record names those that it changes itself; like lines that go in, it stays where a comment switches
    edits off. `around`: it goes around what all other edits of the node make of it. `parted`: statements that share a
    line, and begin one when this edit is made. `becomes`: the name or the word that stands there then.
    """

    where: Where
    code: str
    message: str
    new: New
    level: Level = Level.SAFE
    api: str = ""
    help: str = ""
    effort: Effort | None = None
    theme: str = ""
    group: str = ""
    user: bool = False
    asked: bool = False
    writes_npu: bool = False
    imports: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()
    holes: tuple[ast.expr, ...] = ()
    apart: bool = False
    around: bool = False
    parted: tuple[ast.stmt, ...] = ()
    becomes: str = ""

    @property
    def node(self) -> ast.expr | ast.stmt | ast.arg:
        """The node whose text changes; only for an edit of existing code."""
        assert isinstance(self.where, (ast.expr, ast.stmt, ast.arg))
        return self.where

    @property
    def rewrites(self) -> bool:
        """True for an edit of existing code; lines, imports and byte ranges are none."""
        return isinstance(self.where, (ast.expr, ast.stmt, ast.arg))


@dataclass(slots=True, eq=False)
class Note:
    """A finding without an edit. `extent` is the byte range it speaks of, `blocks` and `details` as in `Finding`;
    `adaptor` would write what is missing.
    """

    extent: Extent
    code: str
    level: Level
    message: str
    api: str = ""
    help: str = ""
    effort: Effort | None = None
    ignored: str = ""
    blocks: str = ""
    adaptor: str = ""
    details: tuple[tuple[str, str], ...] = ()

    def detail(self, what: str) -> str:
        """The first detail of a kind; empty where there is none."""
        return next((value for kind, value in self.details if kind == what), "")

    def as_remark(self, why: str) -> Note:
        """The note where nothing has to be done about what it says, for a reason."""
        if self.level is not Level.MANUAL:
            return self
        return replace(self, level=Level.INFO, effort=None, message=f"{self.message}; {why}")


@dataclass(frozen=True, slots=True)
class Kept:
    """CUDA words in a byte range that stay, for a reason of rules/support/reasons.json; `detail` goes into it."""

    extent: Extent
    reason: str
    detail: str = ""


Found = Edit | Note | Kept


def extent_of(found: Found) -> Extent:
    """The byte range that is edited or spoken of; an edit must be one of a text, not of a node of Python's tree."""
    extent = found.where if isinstance(found, Edit) else found.extent
    assert isinstance(extent, tuple), "of a text byte ranges are edited"
    return extent


def spliced_by(edits: Iterable[Edit]) -> list[tuple[int, int, bytes]]:
    """Edits of byte ranges as `splice` takes them, in the order of their places."""
    return sorted(((*extent_of(edit), str(edit.new).encode()) for edit in edits), key=lambda each: each[:2])


#: What a fixer's functions yield; those that also decide something return it.
Finds = Iterator[Found]
Decides = Generator[Found, None, _T]

__all__ = [
    "Around",
    "AtTop",
    "Beside",
    "Decides",
    "Edit",
    "Extent",
    "Finds",
    "Found",
    "Kept",
    "Note",
    "Where",
]
