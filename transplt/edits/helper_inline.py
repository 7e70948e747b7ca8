"""Functions of a port in the file that calls them, where no second file is written: without annotations, under names
that are free there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial

from transplt.base.text.regular_file import SOURCE, read_regular
from transplt.base.text.source import splice
from transplt.edits.edit import Beside
from transplt.edits.helper_import import top_of
from transplt.edits.helper_source import Import, Module, Piece, around, closure, joined, module_of, paths
from transplt.edits.imports import import_head
from transplt.edits.work import Work
from transplt.rules.versions import loads_itself
from transplt.syntax.files import File
from transplt.syntax.nodes import begins, defaults_of, first_code
from transplt.syntax.scan import FUNCTIONS, parent, statement
from transplt.syntax.scopes import Binding

_WIDTH = 120
#: What loads torch_npu in the module of the portable style, and the names there that are of torch_npu's own.
_LOADS = re.compile(rb"^if importlib\.util\.find_spec.*\n(?:    .*\n)+", re.M)
_NEEDS_IT = frozenset({"profiler", "DEVICE_ACTIVITY"})
#: What is said to a checker of types.
_CHECKED = re.compile(rb"  # type: ignore\[[^\]\n]*\]$", re.M)


@dataclass(frozen=True, slots=True)
class Added:
    """Functions for a file: where they go, their text, their names, and imports for them."""

    place: Beside
    text: str
    names: tuple[str, ...]
    imports: tuple[str, ...]


@dataclass(slots=True)
class Inline:
    """What goes into a file: the names that its functions have there, and those of imports that it got for them.

    `below`: the import below which constants stand, one after another.
    """

    work: Work
    below: ast.stmt | None = None
    names: dict[str, str] = field(default_factory=dict)
    imported: dict[str, str] = field(default_factory=dict)

    def add(self, names: tuple[str, ...], at: ast.AST | None, *, exact: bool = False) -> Added | None:
        """Functions and what they need and the file has not yet; None where they would stand below the node that calls
        one. `exact`: under their own names, whatever a function of the file has by one of them.
        """
        parts = closure(around(names, partial(bare, loads=self._loads(names, exact))), names)
        pieces = [piece for piece in parts.pieces if not {*piece.binds} <= {*self.names}]
        local: dict[str, str] = {}
        lines: dict[str, str] = {}  # by the full names of what they bring
        used: list[Binding] = []
        for given in parts.imports:
            local[given.local] = self._import(given, lines, used)
        body = self.work.scan.tree.body
        above = [statement(binding.node) for binding in used]
        if lines:
            above += import_head(body, set())
        below = max((node for node in above if node in body), key=begins, default=None)
        place = first_code(self.work.scan.tree, below)
        top = top_of(at) if at is not None else None
        if top is not None and not isinstance(top, (*FUNCTIONS, ast.ClassDef)) and begins(place) > begins(top):
            return None
        bound = [each for piece in pieces for each in piece.binds]
        for each in bound:
            self.names[each] = each if exact else _free(self.work, each)
            self.work.new_names.add(self.names[each])
        for given in parts.imports:
            if given.full in lines:
                self.imported[given.full] = local[given.local]
                self.work.new_names.add(local[given.local])
        renames = {**self.names, **local}
        text = joined((piece.defines, _renamed(piece.text, renames)) for piece in pieces)
        names = tuple(self.names[each] for each in bound)
        where = self._where(place, below, names, pieces, exact)
        return Added(where, text, names, tuple(lines.values()))

    def _loads(self, names: tuple[str, ...], exact: bool) -> bool:
        """Whether torch_npu has to be loaded in the file: a newer torch has done so."""
        settings = self.work.settings
        short = settings.style == "portable" and loads_itself(settings.torch_version)
        return exact or not short or not _NEEDS_IT.isdisjoint(names)

    def _where(
        self, place: ast.stmt, below: ast.stmt | None, names: tuple[str, ...], pieces: list[Piece], asks_more: bool
    ) -> Beside:
        """Where texts go: state that needs no import right below those that are there, one after another."""
        first = len(self.names) == len(names)
        if not (asks_more or any(piece.defines for piece in pieces)) and (first or self.below is not None):
            self.below = self.below or (below and _last_import(self.work, below))
            if self.below is not None:
                return Beside(self.below, below=True, apart=first, called=names)
        # Where no import stands above, theirs go below the comments at the top of the file.
        return Beside(place, above_comments=below is not None, called=names)

    def _import(self, given: Import, lines: dict[str, str], used: list[Binding]) -> str:
        """How the file spells what a function imports; a line is asked for where it has no name for it."""
        root = self.work.scan.root
        prefixes: list[tuple[int, str]] = []
        for local, bindings in sorted(root.bindings.items()):
            targets = {binding.target for binding in bindings}
            if len(targets) != 1 or bindings[0].kind != "import":
                continue
            if not isinstance(parent(statement(bindings[0].node)), ast.Module):
                continue
            (target,) = targets
            # A class of torch.nn has several names.
            alike = given.name[:1].isupper() and all(each.startswith("torch.nn.") for each in (target, given.full))
            if target == given.full or (alike and _last(target) == _last(given.full)):
                used.append(bindings[0])
                return local
            if given.full.startswith(f"{target}.") and given.full.startswith("torch."):
                prefixes.append((len(target), f"{local}{given.full[len(target) :]}"))
                used.append(bindings[0])
        if prefixes:
            return max(prefixes)[1]
        if given.full in self.imported:
            return self.imported[given.full]
        name = _free(self.work, given.local)
        renamed = given
        if name != given.local:  # of a dotted name the first part: torch has loaded the rest
            renamed = Import(given.module if given.name else given.module.partition(".")[0], given.name, name)
        lines[given.full] = renamed.line
        return name


def _last_import(work: Work, node: ast.stmt) -> ast.stmt:
    """The last of the imports that follow one without anything else between."""
    body = work.scan.tree.body
    at = body.index(node)
    while at + 1 < len(body) and isinstance(body[at + 1], (ast.Import, ast.ImportFrom)):
        at += 1
    return body[at]


@cache
def bare(name: str, *, loads: bool = True) -> Module:
    """A module of the helper without annotations; without what `loads` torch_npu where torch itself does so."""
    data = without_annotations(read_regular(paths()[name], SOURCE))
    return module_of(name, data if loads else _LOADS.sub(b"", data))


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _free(work: Work, name: str) -> str:
    while name in work.new_names or work.scan.binds(name) or name in work.scan.names:
        name += "_"
    return name


# --- text ------------------------------------------------------------------------------------------------------------


def _renamed(text: str, names: Mapping[str, str]) -> str:
    """A statement with other names for what is bound at the top of a module."""
    file = File.of("piece.py", text.encode())
    edits: list[tuple[int, int, bytes]] = []
    for each in ast.walk(file.scan.tree):
        if isinstance(each, ast.Name) and each.id in names:
            bound = file.names.lookup(each.id, file.scan.scope_of(each))
            if bound is None or bound[0] is file.scan.root:
                edits.append((*file.source.extent(each), names[each.id].encode()))
        elif isinstance(each, (*FUNCTIONS, ast.ClassDef)) and each in file.scan.tree.body:
            edits += _words(file, each, [each.name], names)
        elif isinstance(each, ast.Global):
            edits += _words(file, each, each.names, names)
    edits = sorted({edit for edit in edits if file.source.utf8[edit[0] : edit[1]] != edit[2]})
    return splice(file.source.utf8, edits).decode()


def _words(file: File, node: ast.stmt, words: list[str], names: Mapping[str, str]) -> Iterator[tuple[int, int, bytes]]:
    """Where a statement spells names that are no nodes."""
    start, end = file.source.extent(node)
    for word in words:
        found = re.compile(rb"\b" + word.encode() + rb"\b").search(file.source.utf8, start, end)
        if word in names and found is not None:
            yield found.start(), found.end(), names[word].encode()


def without_annotations(data: bytes) -> bytes:
    """A module without the annotations of its functions and variables, and what is said to a checker of types; those
    in the body of a class stay.
    """
    file = File.of("piece.py", data)
    source, utf8 = file.source, file.source.utf8
    edits: list[tuple[int, int, bytes]] = []
    for node in ast.walk(file.scan.tree):
        if isinstance(node, FUNCTIONS):
            edits += _signature(file, node)
        elif isinstance(node, ast.AnnAssign) and not isinstance(parent(node), ast.ClassDef):
            end = source.extent(node.annotation)[1]
            edits.append((source.extent(node.target)[1], end, b"" if node.value is not None else b" = None"))
    return _joined_headers(_CHECKED.sub(b"", splice(utf8, sorted(edits))))


def _signature(file: File, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[int, int, bytes]]:
    source, args = file.source, node.args
    positional = [*args.posonlyargs, *args.args]
    defaults = {id(arg): value for arg, value in defaults_of(args)}
    for arg in (*positional, *args.kwonlyargs, *(each for each in (args.vararg, args.kwarg) if each)):
        if arg.annotation is None:
            continue
        start = source.extent(arg)[0] + len(arg.arg.encode())
        default = defaults.get(id(arg))
        if default is None:
            yield start, source.extent(arg.annotation)[1], b""
        else:
            yield start, source.extent(default)[0], b"="
    if node.returns is not None:
        begin, end = source.extent(node.returns)
        arrow = source.utf8.rindex(b"->", 0, begin)
        yield len(source.utf8[:arrow].rstrip()), end, b""


def _joined_headers(utf8: bytes) -> bytes:
    """A text in which the header of a function is one line where that is short enough."""
    lines = utf8.decode().split("\n")
    functions = (node for node in ast.walk(ast.parse(utf8)) if isinstance(node, FUNCTIONS))
    for node in sorted(functions, key=lambda each: -each.lineno):
        first, end = node.lineno - 1, node.body[0].lineno - 1
        header = lines[first:end]
        if len(header) < 2 or any("#" in line or '"' in line for line in header):
            continue
        text = header[0] + " ".join(line.strip() for line in header[1:])
        text = re.sub(r",?\s*\):$", "):", text)
        if len(text) <= _WIDTH:
            lines[first:end] = [text]
    return "\n".join(lines).encode()
