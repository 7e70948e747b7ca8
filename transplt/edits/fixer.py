"""A fixer: what it looks for, in which files and for which versions, and the functions that look.

    fixer = Fixer(__name__, code="NPU124", versions="<=2.6", words=("pin_memory",))

    @fixer.on(ast.Call, name="torch.utils.data.DataLoader")
    def pins_for_cuda(work: Work, call: ast.Call) -> Finds:
        yield Edit(call, fixer.code, "...", ...)

It registers itself: a module in the package of its kind is found by its place alone.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from transplt.base.text.text_search import Texts
from transplt.edits.edit import Found
from transplt.rules.versions import versions_of
from transplt.syntax.scan import Scan

if TYPE_CHECKING:
    from transplt.edits.work import Work  # who asks for the fixers of a package by name has no file yet

_F = TypeVar("_F", bound=Callable[..., Iterable[Found]])
_REGISTERED: dict[str, list[Fixer]] = {}


@dataclass(frozen=True, slots=True)
class _Visit:
    function: Callable[[Work, Any], Iterable[Found]]
    kind: type[ast.AST]
    names: frozenset[str]
    last: dict[str, None]


@dataclass(slots=True, eq=False)
class Fixer:
    """One fixer, named after its module.

    `code` is the one it mostly speaks with. `versions` are the torch versions it holds for (all by default), `needs`
    texts one of which a file must hold, `words` texts that make a file worth a look even where it names no CUDA: parts
    of it as it is written, in any case, so the last name of an API and not its full one; `beside` more of them, by a
    text that stands beside them. `theme` says what has to be asked for (`tune:data-loader`, `amp:native`,
    `distributed`; nothing for a part of every migration).

    `edits` is False for one that only reports: it makes no edit, and claims no node. Where nothing but edits counts
    (a second look at an output) it does not look.

    Of a tuning `on_request` says that `--tune all` leaves it out; `value` is a regular expression for what may follow
    its name after `=`, and `example` shows that.

    Fixers look in the order of their `rank`, and of their names where that is the same; of several that want a node
    the first one gets it (`Work.take`): 100 user rules and structure, 200 imports and calls, 300 gates and libraries,
    400 names, 500 values and text, 600 what needs the outcome of all others.
    """

    module: str
    code: str
    rank: int = 350
    versions: str = ""
    needs: tuple[bytes, ...] = ()
    words: tuple[str, ...] = ()
    beside: Mapping[str, Sequence[str]] = field(default_factory=dict)
    theme: str = ""
    edits: bool = True
    on_request: bool = False
    value: str = ""
    example: str = ""
    visits: list[_Visit] = field(default_factory=list)
    _texts: Texts = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._texts = Texts(*self.needs)
        _REGISTERED.setdefault(self.module.rpartition(".")[0], []).append(self)

    @property
    def name(self) -> str:
        return self.module.rpartition(".")[2]

    def on(
        self, kind: type[ast.AST], *, name: str | Iterable[str] = (), last: str | Iterable[str] = ()
    ) -> Callable[[_F], _F]:
        """Register a function for the nodes of a kind, in the order of the scan.

        ast.Call: all calls, those of the full names `name`, or those of the last names `last`. ast.Attribute,
        ast.Name: those of the names `last`. ast.Constant: strings that hold a CUDA word. ast.Import: import statements
        of both kinds. ast.FunctionDef: also asynchronous ones. ast.Module: once for the file.
        """
        names = frozenset((name,) if isinstance(name, str) else name)
        last_names = dict.fromkeys((last,) if isinstance(last, str) else last)

        def register(function: _F) -> _F:
            self.visits.append(_Visit(function, kind, names, last_names))
            return function

        return register

    def stated(self) -> Iterator[tuple[str, list[str], list[str]]]:
        """The versions of torch, texts of which a file must hold one, and the words, in small letters."""
        yield self.versions, [need.decode() for need in self.needs], [*dict.fromkeys(map(str.lower, self.words))]
        for text, words in self.beside.items():
            yield self.versions, [text], [*dict.fromkeys(map(str.lower, words))]

    def holds(self, torch_version: str) -> bool:
        """True for a version of torch that this fixer speaks of."""
        return not self.versions or torch_version in versions_of(self.versions)

    def look(self, work: Work) -> None:
        """Let the fixer look at a file."""
        if self.needs and not self._texts.in_(work.source.utf8):
            return
        for visit in self.visits:
            for node in _nodes(work, visit):
                for found in visit.function(work, node):
                    work.add(found)


def _nodes(work: Work, visit: _Visit) -> Iterable[ast.AST]:
    """The nodes of a file that a visit is for; they may change while it goes on."""
    scan, kind = work.scan, visit.kind
    if kind is ast.Module:
        return (scan.tree,)
    if kind is ast.Call and visit.names:
        return work.calls_by_name(visit.names)
    if kind is ast.Call and visit.last:
        return scan.calls_by_last_name(visit.last)
    if kind in (ast.Attribute, ast.Name):
        held = scan.attributes if kind is ast.Attribute else scan.names
        found = held.keys() & visit.last.keys()  # of tables with hundreds of names a file has few
        return [node for name in visit.last if name in found for node in held[name]] if found else ()
    return _LISTED[kind](scan)


_LISTED: dict[type[ast.AST], Callable[[Scan], Iterable[ast.AST]]] = {
    ast.Call: lambda scan: scan.calls,
    ast.Constant: lambda scan: scan.strings,
    ast.Import: lambda scan: scan.imports,
    ast.ClassDef: lambda scan: scan.classes,
    ast.FunctionDef: lambda scan: scan.functions,
    ast.Compare: lambda scan: scan.compares,
    ast.Subscript: lambda scan: scan.subscripts,
}


def fixers_in(module: str) -> tuple[Fixer, ...]:
    """The fixers that a module states, or a package with its modules; they are imported."""
    found = importlib.import_module(module)
    for each in pkgutil.iter_modules(getattr(found, "__path__", ()), f"{module}."):
        importlib.import_module(each.name)
    every = (fixer for fixers in _REGISTERED.values() for fixer in fixers)
    return tuple(fixer for fixer in every if fixer.module == module or fixer.module.startswith(f"{module}."))


@cache
def fixers_of(*packages: str) -> tuple[Fixer, ...]:
    """The fixers of packages and the packages in them, in the order in which they look; their modules are imported."""
    for package in packages:
        for each in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            importlib.import_module(each.name)
    inside = tuple(f"{package}." for package in packages)
    every = (fixer for fixers in _REGISTERED.values() for fixer in fixers if fixer.module.startswith(inside))
    return tuple(sorted(every, key=lambda fixer: (fixer.rank, fixer.name)))
