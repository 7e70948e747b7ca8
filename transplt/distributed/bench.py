"""What the parts of `distributed` share while they work on one file: the program, the new lines, the names."""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from transplt.distributed.layout import Layout
from transplt.distributed.program import File, Program
from transplt.finding import Effort, Level
from transplt.insertions import Deletion, Insertion
from transplt.rewrite import Change, Transform
from transplt.source import Source
from transplt.work import Work


def written(text: str) -> Transform:
    """The transform that writes a text in place of an expression."""
    return lambda root: text


RANK_0 = "get_rank() == 0"
#: Imports of the standard library go above all others, those of torch below the last one of torch.
_MODULES = sys.stdlib_module_names | {"distutils", "imp", "tomllib"}  # the same under every Python
_STANDARD = ("import atexit", "import contextlib", "import os")


@dataclass(slots=True)
class Bench:
    """One file of the program on the bench. `imports` are the statements that what was written needs."""

    work: Work
    program: Program
    file: File
    layout: Layout
    imports: dict[str, None] = field(default_factory=dict)

    @property
    def dist(self) -> str:
        """The name of torch.distributed in this file; it is imported when it was not."""
        return self._module("torch.distributed", "dist", "torch_dist")

    @property
    def rank_0(self) -> str:
        """The condition that holds in one process only."""
        return f"{self.dist}.{RANK_0}"

    @property
    def parallel(self) -> str:
        """The name of DistributedDataParallel in this file."""
        return self._object("torch.nn.parallel", "DistributedDataParallel")

    @property
    def sampler(self) -> str:
        """The name of DistributedSampler in this file."""
        return self._object("torch.utils.data.distributed", "DistributedSampler")

    @property
    def torch(self) -> str:
        """The name of torch in this file."""
        return self._module("torch", "torch", "torch")

    def standard(self, module: str) -> str:
        """The name of a module of the standard library in this file."""
        return self._module(module, module, module)

    def change(
        self, node: ast.expr, code: str, message: str, transform: Transform, *, writes_npu: bool = False
    ) -> None:
        """An edit of an expression; nothing where the node was claimed already."""
        if self.work.take(node):
            self.work.changes.append(Change(node, code, message, transform, writes_npu=writes_npu))

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
        self.work.deletions.append(Deletion(*extent, text, code, message))

    def left(self, node: ast.expr | ast.stmt, message: str, help_: str, code: str = "NPU332") -> None:
        """Say what a person has to do for the script to run on many cards."""
        self.work.note(node, code, message, level=Level.MANUAL, help=help_, effort=Effort.LOW)

    def remark(self, node: ast.expr | ast.stmt, code: str, message: str, help_: str) -> None:
        """Say what is worth knowing."""
        self.work.note(node, code, message, level=Level.INFO, help=help_, effort=None)

    def finish(self) -> None:
        """Hand the new lines to the file on the bench."""
        self.work.insertions += [*self._import_lines(), *self.layout.insertions()]

    def bound(self, name: str) -> bool:
        """True when a name means something in any scope of the file."""
        return any(name in scope.bindings for scope in self.file.scan.scopes.values())

    def free_name(self, *wanted: str) -> str:
        """The first of some names that means nothing in the file yet, else the last with a number."""
        for name in wanted:
            if not self.bound(name):
                return name
        number = 2
        while self.bound(f"{wanted[-1]}{number}"):
            number += 1
        return f"{wanted[-1]}{number}"

    def _module(self, module: str, name: str, other: str) -> str:
        root = self.file.scan.root
        for local, bindings in sorted(root.bindings.items()):
            if {binding.target for binding in bindings} == {module} and (local == name or module != "torch"):
                return local
        if name != other and self.bound(name):
            name = other
        plain = name == module
        self.imports[f"import {module}" if plain else f"import {module} as {name}"] = None
        return name

    def _object(self, module: str, name: str) -> str:
        root = self.file.scan.root
        for local, bindings in sorted(root.bindings.items()):
            if len(bindings) == 1 and bindings[0].kind == "import" and bindings[0].target.endswith(f".{name}"):
                return local
        self.imports[f"from {module} import {name}"] = None
        return name

    def _import_lines(self) -> list[Insertion]:
        if not self.imports:
            return []
        source, body = self.work.source, self.file.scan.tree.body
        newline = source.newline()
        heads = [node for node in body if isinstance(node, (ast.Import, ast.ImportFrom)) and not _is_future(node)]
        of_torch = [node for node in heads if _of_torch(node)] or heads
        if not heads:
            at = next((node for node in body if not _is_docstring(node) and not _is_future(node)), None)
            offset = source.line_starts[at.lineno - 1] if at else len(source.utf8)
            text = "".join(f"{line}{newline}" for line in sorted(self.imports))
            return [Insertion(offset, text + newline, "NPU333", "imports for several processes")]
        found = []
        first = [line for line in _STANDARD if line in self.imports]
        for line in first:
            offset = _place_of(source, heads, line.partition(" ")[2])
            found.append(Insertion(offset, f"{line}{newline}", "NPU333", "imports for several processes"))
        rest = sorted((line for line in self.imports if line not in first), key=lambda line: (line[:4] != "impo", line))
        if rest:
            last = of_torch[-1].end_lineno or 0
            end = last >= len(source.line_starts)
            offset = len(source.utf8) if end else source.line_starts[last]
            lead = newline if end and not source.utf8.endswith((b"\n", b"\r")) else ""
            text = lead + "".join(f"{line}{newline}" for line in rest)
            found.append(Insertion(offset, text, "NPU333", "imports for several processes"))
        return found


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
