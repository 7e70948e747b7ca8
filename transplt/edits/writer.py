"""Writes into one file in the name of a theme: edits, lines, imports, new names."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from transplt.base.finding import Effort, Level
from transplt.edits.edit import Around, AtTop, Beside, Edit, Extent, Finds, Found
from transplt.edits.fixer import Fixer
from transplt.edits.helper import helper
from transplt.edits.lines import own_lines
from transplt.edits.shared_lines import can_part
from transplt.edits.trees.expressions import between
from transplt.edits.trees.transform import New
from transplt.edits.work import Work


@dataclass(slots=True)
class Writer:
    """What a theme says about the file on the bench; `found` is yielded by its fixer.

    `group` holds its edits together. `import_code` and `import_message` are those of the record of an import that what
    was written needs; `level` is that of all edits, and `asked` says that an option of its own asked for them.
    """

    work: Work
    group: str
    import_code: str
    import_message: str
    level: Level = Level.SAFE
    asked: bool = False
    found: list[Found] = field(default_factory=list)

    # --- edits -------------------------------------------------------------------------------------------------------

    @property
    def edits(self) -> list[Edit]:
        """All edits of the file so far: those that were planned before, and those of this theme."""
        return [*self.work.edits, *(each for each in self.found if isinstance(each, Edit))]

    def change(
        self,
        node: ast.expr,
        code: str,
        message: str,
        new: New,
        *,
        writes_npu: bool = False,
        api: str = "",
        imports: tuple[str, ...] = (),
        beside: bool = False,
    ) -> None:
        """An edit of an expression that the group cannot do without: where another edit has the node, all of the group
        is taken back. `beside`: an edit of arguments of a call, which others may edit too (see `Work.share`).
        """
        claimed = self.work.share(node) if beside and isinstance(node, ast.Call) else self.work.take(node)
        self.rewrite(node, code, message, new, writes_npu=writes_npu, api=api, imports=imports)
        if not claimed and isinstance(lost := self.found.pop(), Edit):
            self.work.grouped.append(lost)

    def change_alone(
        self, node: ast.expr, code: str, message: str, new: New, *, writes_npu: bool = False, api: str = ""
    ) -> bool:
        """An edit of an expression that the group can do without: where another edit has the node, False and a remark.
        """
        if self.work.take(node):
            self.rewrite(node, code, message, new, writes_npu=writes_npu, api=api)
            return True
        self.remark(node, code, f"not done: {message}", "another edit changes this expression")
        return False

    def rewrite(
        self,
        node: ast.expr | ast.stmt | ast.arg,
        code: str,
        message: str,
        new: New,
        *,
        writes_npu: bool = False,
        api: str = "",
        imports: tuple[str, ...] = (),
        holes: tuple[ast.expr, ...] = (),
        apart: bool = False,
    ) -> None:
        """An edit of existing code, on top of what others do to it."""
        self.found.append(
            Edit(
                node, code, message, new, self.level, api, group=self.group, asked=self.asked, writes_npu=writes_npu,
                imports=imports, holes=holes, apart=apart,
            )
        )  # fmt: skip

    def put_around(self, node: ast.expr, code: str, message: str, function: str, *, prefix: str = "") -> None:
        """A call of a function around an expression, whatever other edits make of that; `prefix` stands before it."""
        self.found.append(
            Edit(
                node, code, message, between(f"{function}({prefix}", ")"), self.level, group=self.group,
                asked=self.asked, apart=True, around=True,
            )
        )  # fmt: skip

    # --- lines -------------------------------------------------------------------------------------------------------

    def fits(self, *nodes: ast.stmt) -> bool:
        """True when lines can go in around statements: they have lines of their own, or can get them."""
        return all(can_part(self.work.source, node) for node in nodes)

    def before(
        self, node: ast.stmt, texts: Sequence[str], code: str, message: str, *, above_comments: bool = False
    ) -> None:
        """Lines above a statement, at its indentation; with `above_comments` above those right above it too."""
        self._lines(Beside(node, above_comments=above_comments), "\n".join(texts), code, message)

    def after(self, node: ast.stmt, texts: Sequence[str], code: str, message: str, *, verbatim_from: int = -1) -> None:
        """Lines below a statement, at its indentation; `verbatim_from`: see `Beside`."""
        self._lines(Beside(node, below=True, verbatim_from=verbatim_from), "\n".join(texts), code, message)

    def wrap(
        self, nodes: Sequence[ast.stmt], header: str, code: str, message: str, *, begins: Sequence[str] = ()
    ) -> None:
        """Neighbouring statements under a header, one level in, below some lines (`begins`)."""
        self._lines(Around(nodes[0], nodes[-1], tuple(begins)), header, code, message)

    def remove(self, node: ast.stmt, code: str, message: str, *, only: bool) -> None:
        """Take a statement out with its lines, or put `pass` in its place when a block holds it only."""
        source = self.work.source
        extent, parted = (source.extent(node), ()) if only else own_lines(source, node)
        self.take_out(extent, code, message, "pass" if only else "", parted=parted)

    def take_out(
        self, extent: Extent, code: str, message: str, instead: str = "", *, parted: tuple[ast.stmt, ...] = ()
    ) -> None:
        """Take whole lines out, or a statement for another one; `parted` are statements that begin a line then."""
        self._lines(extent, instead, code, message, parted)

    def imports(self, line: str) -> None:
        """An import statement that what was written needs."""
        self._lines(AtTop(), line, self.import_code, self.import_message)

    def helper(self, name: str, code: str, message: str, at: ast.AST | None = None) -> str:
        """How the file calls a function of the helper (`npu_port.start`), which is brought there once; empty where it
        cannot be called, which is said. `at` is the node that calls it; `code` and `message` are those of the record
        of a function that goes into the file itself. See also `transplt.edits.helper.lacking_of`.
        """
        called = helper(
            self.work, name, group=self.group, code=code, message=message, at=at, level=self.level, asked=self.asked
        )
        self.found += called.found
        return called.text

    @property
    def portable(self) -> bool:
        """True where what is written runs on CUDA as well."""
        return self.work.settings.style == "portable"

    @property
    def card(self) -> str:
        """The text that names the accelerator: a string, or in the portable style the name of the project's module."""
        return self.helper("DEVICE_TYPE", self.import_code, self.import_message) if self.portable else '"npu"'

    def _lines(
        self,
        where: Extent | Beside | Around | AtTop,
        text: str,
        code: str,
        message: str,
        parted: tuple[ast.stmt, ...] = (),
    ) -> None:
        self.found.append(
            Edit(where, code, message, text, self.level, group=self.group, asked=self.asked, parted=parted)
        )

    # --- notes and edits --------------------------------------------------------------------------------------------

    def left(self, node: ast.expr | ast.stmt, message: str, help_: str, code: str, effort: Effort = Effort.LOW) -> None:
        """Say what a person has to do."""
        self.found.append(self.work.note(node, code, message, level=Level.MANUAL, help=help_, effort=effort))

    def remark(
        self,
        node: ast.expr | ast.stmt,
        code: str,
        message: str,
        help_: str,
        details: tuple[tuple[str, str], ...] = (),
    ) -> None:
        """Say what is worth knowing."""
        note = self.work.note(node, code, message, level=Level.INFO, help=help_, effort=None, details=details)
        self.found.append(note)

    # --- names -------------------------------------------------------------------------------------------------------

    @property
    def torch(self) -> str:
        """The name of torch in this file."""
        return self.module("torch", "torch", "torch")

    def standard(self, module: str) -> str:
        """The name of a module of the standard library in this file."""
        return self.module(module, module, module)

    def bound(self, name: str) -> bool:
        """True when a name means something in any scope of the file, or is about to."""
        return name in self.work.new_names or self.work.scan.binds(name)

    def free_name(self, *wanted: str) -> str:
        """The first of some names that means nothing in the file yet, else the last with a number."""
        for name in wanted:
            if not self.bound(name):
                return name
        number = 2
        while self.bound(f"{wanted[-1]}{number}"):
            number += 1
        return f"{wanted[-1]}{number}"

    def new_name(self, *wanted: str) -> str:
        """A free name that nobody else gets."""
        name = self.free_name(*wanted)
        self.work.new_names.add(name)
        return name

    def module(self, module: str, name: str, other: str) -> str:
        """The name of a module in this file; it is imported, as `name` or else as `other`, when it was not."""
        root = self.work.scan.root
        for local, bindings in sorted(root.bindings.items()):
            if {binding.target for binding in bindings} == {module} and (local == name or module != "torch"):
                return local
        if name != other and self.work.scan.binds(name):
            name = other
        self.imports(f"import {module}" if name == module else f"import {module} as {name}")
        return name

    def object(self, module: str, name: str) -> str:
        """The name of a class or function of a module in this file; it is imported when it was not."""
        root = self.work.scan.root
        for local, bindings in sorted(root.bindings.items()):
            if len(bindings) == 1 and bindings[0].kind == "import" and bindings[0].target.endswith(f".{name}"):
                return local
        self.imports(f"from {module} import {name}")
        return name


_Own = TypeVar("_Own", bound=Writer)


def on_file(
    fixer: Fixer, writer_for: Callable[[Work, Fixer], _Own | None]
) -> Callable[[Callable[[Work, _Own], None]], Callable[[Work, _Own], None]]:
    """Register a function that writes once for a file, where there is a writer for the fixer."""

    def register(write: Callable[[Work, _Own], None]) -> Callable[[Work, _Own], None]:
        @fixer.on(ast.Module)
        def found(work: Work, tree: ast.Module) -> Finds:
            if (writer := writer_for(work, fixer)) is not None:
                write(work, writer)
                yield from writer.found

        return write

    return register
