"""Whole statements in a file's new text: lines, imports, statements that go; for those who write more than one edit.

What several themes ask for around one statement fits together, because they all put it on the one layout of the file
(`Work.layout`). `finish` renders it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from transplt.edits.insertions import Deletion, Insertion
from transplt.edits.layout import Layout
from transplt.edits.rewrite import Change
from transplt.edits.work import NewImport, Work
from transplt.finding import Effort, Level
from transplt.text.source import Source
from transplt.trees.transform import Transform

#: Imports of the standard library go above all others, those of torch below the last one of torch.
_MODULES = sys.stdlib_module_names | {"distutils", "imp", "tomllib"}  # the same under every Python


def written(text: str) -> Transform:
    """The transform that writes a text in place of an expression."""
    return lambda root: text


@dataclass(slots=True)
class Writer:
    """Writes into one file, in the name of one theme.

    `import_code` and `import_message` are those of the record of an import that what was written needs; `level` is
    that of all edits, and `asked` says that an option of its own asked for them.
    """

    work: Work
    import_code: str
    import_message: str
    level: Level = Level.SAFE
    asked: bool = False

    @property
    def layout(self) -> Layout:
        """The new lines of the file."""
        return layout_of(self.work)

    @property
    def torch(self) -> str:
        """The name of torch in this file."""
        return self.module("torch", "torch", "torch")

    def standard(self, module: str) -> str:
        """The name of a module of the standard library in this file."""
        return self.module(module, module, module)

    def change(
        self,
        node: ast.expr,
        code: str,
        message: str,
        transform: Transform,
        *,
        writes_npu: bool = False,
        api: str = "",
        imports: tuple[str, ...] = (),
    ) -> bool:
        """An edit of an expression; nothing, and False, where the node was claimed already."""
        if not self.work.take(node):
            return False
        self.work.changes.append(
            Change(
                node, code, message, transform, self.level, api,
                writes_npu=writes_npu, asked=self.asked, imports=imports,
            )
        )  # fmt: skip
        return True

    def before(
        self, node: ast.stmt, texts: Sequence[str], code: str, message: str, *, above_comments: bool = False
    ) -> None:
        """Lines above a statement; see `Layout.before`."""
        self.layout.before(node, texts, code, message, self.level, above_comments=above_comments)

    def after(self, node: ast.stmt, texts: Sequence[str], code: str, message: str) -> None:
        """Lines below a statement; see `Layout.after`."""
        self.layout.after(node, texts, code, message, self.level)

    def wrap(self, nodes: Sequence[ast.stmt], header: str, code: str, message: str) -> None:
        """Statements under a header, one level in; see `Layout.wrap`."""
        self.layout.wrap(nodes, header, code, message, self.level)

    def remove(self, node: ast.stmt, code: str, message: str, *, only: bool) -> None:
        """Take a statement out with its lines, or put `pass` in its place when a block holds it only."""
        source = self.work.source
        start, end = source.extent(node)
        line, last = node.lineno, node.end_lineno or node.lineno
        whole = (
            source.line_starts[line - 1],
            source.line_starts[last] if last < len(source.line_starts) else len(source.utf8),
        )
        extent, text = ((start, end), "pass") if only else (whole, "")
        self.work.deletions.append(Deletion(*extent, text, code, message, self.level))

    def left(self, node: ast.expr | ast.stmt, message: str, help_: str, code: str, effort: Effort = Effort.LOW) -> None:
        """Say what a person has to do."""
        self.work.note(node, code, message, level=Level.MANUAL, help=help_, effort=effort)

    def remark(self, node: ast.expr | ast.stmt, code: str, message: str, help_: str) -> None:
        """Say what is worth knowing."""
        self.work.note(node, code, message, level=Level.INFO, help=help_, effort=None)

    def bound(self, name: str) -> bool:
        """True when a name means something in any scope of the file, or is about to."""
        return name in self.work.new_names or any(name in scope.bindings for scope in self.work.scan.scopes.values())

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
        if name != other and any(name in scope.bindings for scope in self.work.scan.scopes.values()):
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

    def imports(self, line: str) -> None:
        """An import statement that what was written needs."""
        self.work.new_imports.setdefault(line, NewImport(self.import_code, self.import_message, self.level))


def layout_of(work: Work) -> Layout:
    """The layout of the file on the bench; made when it is first asked for."""
    if work.layout is None:
        work.layout = Layout(work.source, work.scan.tree)
    return work.layout


def finish(work: Work) -> None:
    """Hand the new lines to the file on the bench, after all themes have written."""
    work.insertions += _import_lines(work)
    if work.layout is not None:
        work.insertions += work.layout.insertions()


def _import_lines(work: Work) -> list[Insertion]:
    if not work.new_imports:
        return []
    source, body = work.source, work.scan.tree.body
    newline = source.newline()
    heads = [node for node in body if isinstance(node, (ast.Import, ast.ImportFrom)) and not _is_future(node)]
    of_torch = [node for node in heads if _of_torch(node)] or heads
    if not heads:
        at = next((node for node in body if not _is_docstring(node) and not _is_future(node)), None)
        offset = source.line_starts[at.lineno - 1] if at else len(source.utf8)
        text = "".join(f"{line}{newline}" for line in sorted(work.new_imports))
        return [_import(work, sorted(work.new_imports)[0], offset, text + newline)]
    found = []
    first = sorted(line for line in work.new_imports if _is_standard(line))
    for line in first:
        offset = _place_of(source, heads, line.partition(" ")[2])
        found.append(_import(work, line, offset, f"{line}{newline}"))
    rest = sorted((line for line in work.new_imports if line not in first), key=lambda line: (line[:4] != "impo", line))
    last = of_torch[-1].end_lineno or 0
    end = last >= len(source.line_starts)
    offset = len(source.utf8) if end else source.line_starts[last]
    for line in rest:
        lead = newline if end and line == rest[0] and not source.utf8.endswith((b"\n", b"\r")) else ""
        found.append(_import(work, line, offset, f"{lead}{line}{newline}"))
    return found


def _import(work: Work, line: str, offset: int, text: str) -> Insertion:
    new = work.new_imports[line]
    return Insertion(offset, text, new.code, new.message, new.level)


def _is_standard(line: str) -> bool:
    """True for `import module` of the standard library."""
    words = line.split()
    return len(words) == 2 and words[1].split(".")[0] in _MODULES


def _place_of(source: Source, heads: Sequence[ast.Import | ast.ImportFrom], module: str) -> int:
    """Where `import module` goes among plain imports of the standard library, in the order of the alphabet."""
    plain = []
    for node in heads:
        if isinstance(node, ast.Import) and node.names[0].name.split(".")[0] in _MODULES:
            plain.append(node)
    after = next((node for node in plain if node.names[0].name > module), None)
    if after is not None or not plain:
        return source.line_starts[(after or heads[0]).lineno - 1]
    return source.line_starts[plain[-1].end_lineno or plain[-1].lineno]


def _of_torch(node: ast.Import | ast.ImportFrom) -> bool:
    if isinstance(node, ast.ImportFrom):
        return not node.level and (node.module or "").split(".")[0] == "torch"
    return any(alias.name.split(".")[0] == "torch" for alias in node.names)


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str)
