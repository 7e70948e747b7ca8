"""What a tuning reads of the program around a file: its loaders, the loops over them, where its variables are used."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from transplt.edits.work import Work
from transplt.fixers.tunings.reach import key, reach_of
from transplt.program.files import own_file, read_file
from transplt.program.imports import imports_of
from transplt.program.program import (
    File,
    Program,
    Slot,
    enclosing_function,
    program_of,
)
from transplt.program.training import Loader, Training, find_training, loaders_of
from transplt.program.values import uses
from transplt.syntax.asks import by_place
from transplt.syntax.scan import parent

Loop = ast.For | ast.AsyncFor
#: Calls that hand on what they iterate over.
WRAPPERS = frozenset({"enumerate", "tqdm", "trange", "zip", "iter", "list", "tuple", "islice", "progress_bar", "track"})
#: Where a value that no variable takes gets out of sight.
_AWAY = (
    ast.Assign, ast.AnnAssign, ast.Dict, ast.List, ast.Tuple, ast.Set, ast.ListComp, ast.DictComp, ast.GeneratorExp,
    ast.Yield, ast.Lambda,
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Reader:
    """Something that iterates over loaders: a loop, or a call of `iter` or a comprehension (`loop` is None then)."""

    file: File
    node: ast.AST
    loop: Loop | None
    trains: bool


@dataclass(slots=True)
class Reading:
    """A program with its loaders. `readers` are those of a DataLoader call, by the id of the call.

    The nodes are those of the program, which are not those of the file on the bench: see `calls_here`.
    """

    program: Program
    training: Training
    readers: dict[int, list[Reader]] = field(default_factory=dict)
    loaders: dict[int, Loader] = field(default_factory=dict)
    read_by: dict[int, tuple[Loader, ...]] = field(default_factory=dict)  # by the id of a reader's node
    _taken: dict[int, list[tuple[Slot, int | None]]] = field(default_factory=dict)  # by the id of the expression

    def loaders_in(self, path: str) -> list[Loader]:
        """The calls of DataLoader in a file that somebody reads, by place."""
        found = [loader for loader in self.loaders.values() if loader.file.path == path]
        return sorted(found, key=lambda loader: (loader.call.lineno, loader.call.col_offset))

    def held(self, call: ast.Call) -> tuple[list[Slot], bool]:
        """The variables that hold the value of a call, through assignments, arguments and returns.

        The second value is False when it also gets to where it cannot be followed: into a dict, an unknown object.
        """
        if not self._taken:
            for slot, values in self.program.values.items():
                for value in values:
                    self._taken.setdefault(id(value.node), []).append((slot, value.index))
        slots: dict[Slot, None] = {}
        whole = True
        pending: list[tuple[ast.expr, int | None]] = [(call, None)]
        seen: set[tuple[int, int | None]] = set()
        while pending:
            node, item = pending.pop()
            if (id(node), item) in seen:
                continue
            seen.add((id(node), item))
            taken = [slot for slot, index in self._taken.get(id(node), ()) if index == item]
            for slot in taken:
                if slot not in slots:
                    slots[slot] = None
                    pending += [(use, None) for _, use in uses(self.program, {slot})]
            above = parent(node)
            index: int | None = item
            if isinstance(above, ast.Tuple) and isinstance(parent(above), ast.Return):
                index, above = above.elts.index(node), parent(above)
            if isinstance(above, ast.Return):
                function = enclosing_function(above)
                sites = self.program.call_sites.get(function, []) if function is not None else []
                whole = whole and bool(sites)
                pending += [(site, index) for _, site in sites]
            elif isinstance(above, (ast.IfExp, ast.BoolOp, ast.NamedExpr)):
                pending.append((above, item))
            elif not taken and (item is not None or isinstance(above, _AWAY)):
                whole = False
        return list(slots), whole

    def others(self, file: File, node: ast.expr) -> list[tuple[File, ast.expr]]:
        """Where the variable that an expression is (also one that another package made) is read."""
        slot = self.program.slot(file, node)
        if slot is not None:
            return uses(self.program, {slot})
        if not isinstance(node, ast.Name):
            return []
        held = file.names.lookup(node.id, file.scan.scope_of(node))
        found = []
        for each in file.scan.names.get(node.id, ()):
            seen = file.names.lookup(node.id, file.scan.scope_of(each))
            if held is not None and seen is not None and seen[0] is held[0]:
                found.append(each)
        return [(file, each) for each in by_place(found)]


def reading(work: Work) -> Reading:
    """The program around the file on the bench; worked out once for all of its files."""
    reach = reach_of(work)
    program = reach.programs.get(work.scan.path)
    if program is None:
        own = own_file(work)
        program = reach.programs[own.path] = program_of([own], work.project)
    kept = reach.kept.get(("reading", id(program)))
    if not isinstance(kept, Reading):
        kept = reach.kept[("reading", id(program))] = Reading(program, find_training(program))
        _find_readers(kept)
    return kept


def has_loaders(work: Work) -> bool:
    """True where some file of the project makes loaders."""
    reach = reach_of(work)
    if ("loaders", 0) not in reach.kept:
        reach.kept[("loaders", 0)] = any(b"DataLoader" in data for data in reach.sources.values())
    return bool(reach.kept[("loaders", 0)])


def layers_and_all(work: Work) -> Program:
    """The program around the file on the bench with all files that it imports, also those that only define layers."""
    reach = reach_of(work)
    program = reading(work).program
    kept = reach.kept.get(("layers", id(program)))
    if isinstance(kept, Program):
        return kept
    paths = imports_of(work.project).reached(*(file.path for file in program.files))[len(program.files) :]
    more = [file for path in paths if (file := read_file(path, reach.sources.get(path, b""))) is not None]
    every = program_of([*program.files, *more], work.project) if more else program
    reach.kept[("layers", id(program))] = every
    return every


def calls_here(work: Work, nodes: list[ast.Call]) -> list[tuple[ast.Call, ast.Call]]:
    """(call of the program, the same call in the file on the bench), by place; those of other files are left out."""
    own = {key("", call): call for call in work.scan.calls}
    pairs = [(node, own[place]) for node in nodes if (place := key("", node)) in own]
    return sorted(pairs, key=lambda pair: (pair[0].lineno, pair[0].col_offset))


def _find_readers(found: Reading) -> None:
    program, training = found.program, found.training
    if not any(b"DataLoader" in file.source.utf8 for file in program.files):
        return
    trains = {id(loop) for _, loop in training.regions}
    for file in program.files:
        sources: list[tuple[ast.AST, ast.expr, Loop | None]] = []
        for node in ast.walk(file.scan.tree):
            if isinstance(node, (ast.For, ast.AsyncFor)):
                sources.append((node, node.iter, node))
            elif isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
                sources += [(node, each.iter, None) for each in node.generators]
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("iter", "list", "tuple") and node.args:
                sources.append((node, node.args[0], None))
        for node, source, loop in sources:
            if isinstance(source, ast.Constant) or getattr(getattr(source, "func", None), "id", "") == "range":
                continue
            loaders = tuple(loaders_of(program, file, source))
            if not loaders:
                continue
            found.read_by[id(node)] = loaders
            reader = Reader(file, node, loop, id(node) in trains)
            for loader in loaders:
                found.loaders.setdefault(id(loader.call), loader)
                found.readers.setdefault(id(loader.call), []).append(reader)
