"""The modules of transplt/helper as text: their statements, what each binds and needs, and the closure of a name.

They are read and never imported: torch is not needed to migrate.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path

from transplt.base.text.regular_file import SOURCE, read_regular
from transplt.syntax.files import File
from transplt.syntax.nodes import inner_nodes, nodes_in, of_kind
from transplt.syntax.scan import FUNCTIONS

PACKAGE = "transplt.helper"
#: What a module offers to projects; the rest is what that needs.
_OFFERS = re.compile(rb"^__all__ = (\[[^\]]*\])", re.M)


@dataclass(frozen=True, slots=True)
class Import:
    """What gives a name its value from outside: `import torch`, `from torch.nn import Module`.

    `types_only`: it stands under `if TYPE_CHECKING:`.
    """

    module: str
    name: str = ""  # what is taken from it; empty for the module itself
    asname: str = ""
    types_only: bool = False

    @property
    def local(self) -> str:
        """The name that it binds."""
        return self.asname or self.name or self.module.partition(".")[0]

    @property
    def full(self) -> str:
        """What the local name stands for."""
        if self.name:
            return f"{self.module}.{self.name}"
        return self.module if self.asname else self.module.partition(".")[0]

    @property
    def line(self) -> str:
        """The statement."""
        end = f" as {self.asname}" if self.asname else ""
        return f"from {self.module} import {self.name}{end}" if self.name else f"import {self.module}{end}"


@dataclass(frozen=True, slots=True)
class Piece:
    """A statement at the top of a module, with the comments above it.

    `binds` are the names that it gives a value, `needs` those of the module that it names, `at_once` those of them that
    it needs when it is executed.
    """

    module: str
    text: str
    binds: tuple[str, ...]
    needs: tuple[str, ...]
    at_once: tuple[str, ...]
    defines: bool  # a function or a class


@dataclass(frozen=True, slots=True)
class Module:
    """One module of the helper: what it imports by local name, and its statements. `optional` are imports in a `try`,
    which go along with whatever is taken from the module; `tried` are the names that they bind. So do those behind a
    question, which are statements as others are: `always` are the names that these bind.
    """

    name: str
    imports: dict[str, Import]
    pieces: tuple[Piece, ...]
    optional: tuple[str, ...]
    tried: tuple[str, ...]
    always: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Parts:
    """What some names need, in the order in which it can be executed."""

    imports: tuple[Import, ...]
    optional: tuple[str, ...]
    pieces: tuple[Piece, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """All that is bound."""
        return tuple(name for piece in self.pieces for name in piece.binds)


def folder() -> Path:
    """Where the modules lie, in a checkout as in an installed wheel."""
    return Path(__file__).resolve().parent.parent / "helper"


@cache
def paths() -> dict[str, Path]:
    """The modules by their last names."""
    return {path.stem: path for path in sorted(folder().rglob("*.py")) if path.stem != "__init__"}


@cache
def owners() -> dict[str, str]:
    """What a project may use, each with its module; read off the texts alone."""
    found = ((name, _OFFERS.search(read_regular(path, SOURCE))) for name, path in paths().items())
    every = [(each, name) for name, match in found if match for each in ast.literal_eval(match[1].decode())]
    if twice := {each for each, _ in every if [one for one, _ in every].count(each) > 1}:
        raise ValueError(f"two modules of {PACKAGE} offer {', '.join(sorted(twice))}")
    return dict(every)


@cache
def module_named(name: str) -> Module:
    """One module, as it stands. KeyError for one that there is not."""
    return module_of(name, read_regular(paths()[name], SOURCE))


def around(names: Iterable[str], read: Callable[[str], Module] = module_named) -> dict[str, Module]:
    """The modules that offer some names and those that these import, each below those that it imports."""
    found: dict[str, Module] = {}
    pending = {owners()[each] for each in names}
    while pending:
        found.update((name, read(name)) for name in pending)
        pending = {below for name in pending for below in _below(found[name])} - {*found}
    ordered: dict[str, Module] = {}
    while ready := [name for name in sorted(found) if name not in ordered and _below(found[name]) <= {*ordered}]:
        ordered.update((name, found[name]) for name in ready)
    if circle := sorted({*found} - {*ordered}):
        raise ValueError(f"modules of {PACKAGE} that import one another in a circle: {', '.join(circle)}")
    return ordered


@cache
def public_names() -> tuple[str, ...]:
    """The functions, classes and constants that a project may use, sorted."""
    return tuple(sorted(owners()))


@cache
def first_sentence(name: str) -> str:
    """The first paragraph of what a function or class says of itself, or of the comment above a constant. KeyError for
    another name.
    """
    for piece in module_named(owners()[name]).pieces:
        if name in piece.binds:
            if not piece.defines:
                return " ".join(line.lstrip("#: ") for line in piece.text.splitlines() if line.startswith("#"))
            (node,) = ast.parse(piece.text).body
            assert isinstance(node, (*FUNCTIONS, ast.ClassDef))
            return " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())
    raise KeyError(name)


@cache
def parts_of(names: tuple[str, ...]) -> Parts:
    """What some names need. KeyError for a name that no module offers."""
    return closure(around(names), names)


def closure(every: dict[str, Module], names: Iterable[str]) -> Parts:
    """What some names of modules need, each module below those that it imports. KeyError for a name that none has."""
    known = [(module.name, piece) for module in every.values() for piece in module.pieces]
    binders = {(home, name): piece for home, piece in known for name in piece.binds}
    homes = {name: home for home, name in binders}
    pending = [(homes[name], name) for name in names]
    wanted: set[int] = set()
    imports: dict[str, Import] = {}
    seen = set(pending)
    while pending:
        home, name = pending.pop()
        module = every[home]
        given = module.imports.get(name)
        if name in module.tried:
            continue
        if given is not None and given.module.startswith(f"{PACKAGE}."):
            more = [(given.module.rpartition(".")[2], given.name)]
        elif given is not None:
            imports[given.local] = _one_of(imports.get(given.local), given)
            continue
        else:
            piece = binders[home, name]
            wanted.add(id(piece))
            more = [(home, each) for each in (*piece.needs, *piece.binds, *module.always)]
        pending += [each for each in more if each not in seen]
        seen.update(more)
    pieces = [piece for _, piece in known if id(piece) in wanted]
    used = {piece.module for piece in pieces}
    optional = _tried([each for each in every.values() if each.name in used])
    ordered = sorted(imports.values(), key=lambda given: (given.module, given.name, given.asname))
    return Parts(tuple(ordered), optional, tuple(_state_first(pieces)))


def joined(pieces: Iterable[tuple[bool, str]]) -> str:
    """The texts of some statements below each other, (whether it is a definition, text) of each."""
    text, before, defined = "", "", False
    for defines, new in pieces:
        if before:
            text += "\n\n\n" if defines or defined else "\n\n" if before.startswith("if ") else "\n"
        text, before, defined = text + new, new, defines
    return text


def _tried(modules: list[Module]) -> tuple[str, ...]:
    """The imports in a `try` of some modules, each once; not what another of them imports behind a question."""
    always = {name for each in modules for name in each.always}
    return tuple(dict.fromkeys(text for each in modules if not {*each.tried} <= always for text in each.optional))


def _one_of(before: Import | None, given: Import) -> Import:
    """Of two imports of one name the nearer one: torch.nn gives what torch.nn.parallel has."""
    if before is None or (before.types_only and not given.types_only):
        return given
    if before.name != given.name or before.module.partition(".")[0] != given.module.partition(".")[0]:
        raise ValueError(f"one name for two things: {before.line}, {given.line}")
    return min(before, given, key=lambda each: (each.types_only, len(each.module)))


def _state_first(pieces: list[Piece]) -> Iterator[Piece]:
    """State that needs no definition above the definitions, the last of it what is the module's own and no other state
    needs; all else in its order.
    """
    early: list[Piece] = []
    for piece in pieces:
        if not piece.defines and {*piece.at_once} <= {name for each in early for name in each.binds}:
            early.append(piece)
    needed = {name for piece in early for name in piece.at_once}
    own = [each for each in early if each.binds and all(name[0] == "_" and name not in needed for name in each.binds)]
    yield from (piece for piece in early if piece not in own)
    yield from own
    yield from (piece for piece in pieces if piece not in early)


def _below(module: Module) -> set[str]:
    """The other modules that one imports."""
    every = (given.module for given in module.imports.values() if given.module.startswith(f"{PACKAGE}."))
    return {name.rpartition(".")[2] for name in every}


# --- reading ---------------------------------------------------------------------------------------------------------


def module_of(name: str, data: bytes) -> Module:
    """One module, read. UnreadableSource where Python does not read it."""
    file = File.of(f"{name}.py", data)
    imports: dict[str, Import] = {}
    optional: list[str] = []
    tried: list[str] = []
    always: list[str] = []
    pieces: list[Piece] = []
    body = file.scan.tree.body
    for index, node in enumerate(body):
        match node:
            case ast.Import() | ast.ImportFrom():
                imports.update((each.local, each) for each in _imports(node))
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                inner = [each for each in node.body if isinstance(each, (ast.Import, ast.ImportFrom))]
                imports.update((each.local, each) for one in inner for each in _imports(one, types_only=True))
            case ast.Try() if inside := [*of_kind(ast.Import, node.body)]:
                optional.append(_text(file, body, index))
                tried += [each.local for one in inside for each in _imports(one)]
            case ast.If():
                pieces.append(_piece(file, name, body, index))
                always += pieces[-1].binds
            case ast.Expr(value=ast.Constant()) | ast.Assign(targets=[ast.Name(id="__all__"), *_]):
                pass
            case _:
                pieces.append(_piece(file, name, body, index))
    imports.pop("annotations", None)
    return Module(name, imports, tuple(pieces), tuple(optional), tuple(tried), tuple(always))


def _imports(node: ast.Import | ast.ImportFrom, *, types_only: bool = False) -> Iterator[Import]:
    for alias in node.names:
        if isinstance(node, ast.Import):
            yield Import(alias.name, "", alias.asname or "", types_only)
        else:
            yield Import(node.module or "", alias.name, alias.asname or "", types_only)


def _piece(file: File, module: str, body: list[ast.stmt], index: int) -> Piece:
    node, root = body[index], file.scan.root
    inside = {id(each) for each in ast.walk(node)}
    every = chain.from_iterable(file.scan.names.values())
    named = [name for name in every if id(name) in inside and is_of_module(file, name)]
    own = tuple(name for name, bindings in root.bindings.items()
                if any(id(each.node) in inside for each in bindings) and _is_bound_at_top(node, name))  # fmt: skip
    bodies = (inner.body for inner in ast.walk(node) if isinstance(inner, FUNCTIONS))
    late = {id(each) for each in nodes_in([*chain.from_iterable(bodies), *annotations_in(node)])}
    imported = {name: bindings[0].target for name, bindings in root.bindings.items() if bindings[0].kind == "import"}
    outside = {name for name, target in imported.items() if not target.startswith(f"{PACKAGE}.")}
    at_once = {name.id for name in named if id(name) not in late} - {*own} - outside
    needs = {name.id for name in named} - {*own}
    needs.update(*(each.names for each in inner_nodes(node, ast.Global)))
    defines = isinstance(node, (*FUNCTIONS, ast.ClassDef))
    return Piece(module, _text(file, body, index), own, tuple(sorted(needs)), tuple(sorted(at_once)), defines)


def _is_bound_at_top(node: ast.stmt, name: str) -> bool:
    """True where a statement of the module itself binds a name; a function binds others only by `global`."""
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        return node.name == name
    return any(
        (isinstance(each, ast.Name) and each.id == name)
        or (isinstance(each, (*FUNCTIONS, ast.ClassDef)) and each.name == name)
        for each in ast.walk(node)
    )


def is_of_module(file: File, name: ast.Name) -> bool:
    """True for a name that a module gives its value."""
    found = file.names.lookup(name.id, file.scan.scope_of(name))
    return found is not None and found[0] is file.scan.root


def annotations_in(node: ast.AST) -> Iterator[ast.expr]:
    """The annotations of parameters, results and variables in a statement."""
    for inner in ast.walk(node):
        if isinstance(inner, FUNCTIONS) and inner.returns is not None:
            yield inner.returns
        elif isinstance(inner, (ast.arg, ast.AnnAssign)) and inner.annotation is not None:
            yield inner.annotation


def _text(file: File, body: list[ast.stmt], index: int) -> str:
    """The lines of a statement, with its decorators and the comments right above it."""
    node = body[index]
    lines = file.source.text.splitlines()
    first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
    above = body[index - 1].end_lineno or 0 if index else 0
    while first - 1 > above and lines[first - 2].startswith("#"):
        first -= 1
    return "\n".join(lines[first - 1 : node.end_lineno])
