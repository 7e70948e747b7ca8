"""What a tuning reads of the program around a file: its loaders, the loops over them, where its variables are used."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from transplt.base.grouped import grouped
from transplt.edits.work import Work
from transplt.fixers.around import program_around, programs_in
from transplt.flow.facts import ProjectFacts
from transplt.program.imports import imports_of
from transplt.program.program import File, Program, Variable, enclosing_function, program_of
from transplt.program.programs import programs_of
from transplt.program.training import Loader, Training, find_training, loaders_of
from transplt.program.variable_values import uses
from transplt.syntax.nodes import by_place
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
    """A program with its loaders. `readers` are those of a DataLoader call, by the id of the call."""

    program: Program
    training: Training
    readers: dict[int, list[Reader]] = field(default_factory=dict)
    loaders: dict[int, Loader] = field(default_factory=dict)
    read_by: dict[int, tuple[Loader, ...]] = field(default_factory=dict)  # by the id of a reader's node
    _taken: dict[int, list[tuple[Variable, int | None]]] = field(default_factory=dict)  # by the id of the expression

    def loaders_in(self, path: str) -> list[Loader]:
        """The calls of DataLoader in a file that somebody reads, by place."""
        found = [loader for loader in self.loaders.values() if loader.file.path == path]
        return sorted(found, key=lambda loader: (loader.call.lineno, loader.call.col_offset))

    def held(self, call: ast.Call) -> tuple[list[Variable], bool]:
        """The variables that hold the value of a call, through assignments, arguments and returns.

        The second value is False when it also gets to where it cannot be followed: into a dict, an unknown object.
        """
        if not self._taken:
            every = self.program.values.items()
            self._taken = grouped((id(each.node), (slot, each.index)) for slot, values in every for each in values)
        slots: dict[Variable, None] = {}
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
            match parent(node), parent(parent(node)):
                case (ast.Return() as returned, _) | (ast.Tuple(), ast.Return() as returned):
                    above = parent(node)
                    index = above.elts.index(node) if isinstance(above, ast.Tuple) else item
                    function = enclosing_function(returned)
                    sites = self.program.call_sites.get(function, []) if function is not None else []
                    whole = whole and bool(sites)
                    pending += [(site, index) for _, site in sites]
                case (ast.IfExp() | ast.BoolOp() | ast.NamedExpr()) as above, _:
                    pending.append((above, item))
                case above, _ if not taken and (item is not None or isinstance(above, _AWAY)):
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
    program = program_around(work)
    if program is None:
        own = programs_of(work.project).own(work.file)
        program = programs_in(work)[own.path] = program_of([own], work.project)
    return program.once(_read)


def has_loaders(work: Work) -> bool:
    """True where some file of the project makes loaders."""
    return work.project.once(_names_loaders) if work.project.sources else b"DataLoader" in work.source.utf8


def _names_loaders(project: ProjectFacts) -> bool:
    return any(b"DataLoader" in data for data in project.sources.values())


def layers_and_all(work: Work) -> Program:
    """The program around the file on the bench with all files that it imports, also those that only define layers."""
    return reading(work).program.once(_with_layers)


def _with_layers(program: Program) -> Program:
    project = program.project
    paths = imports_of(project).reached(*(file.path for file in program.files))[len(program.files) :]
    read = (project.files.read(path, project.sources.get(path, b"")) for path in paths)
    more = [file for file in read if file is not None]
    return program_of([*program.files, *more], project) if more else program


def _read(program: Program) -> Reading:
    training = program.once(find_training)
    found = Reading(program, training)
    if not any(b"DataLoader" in file.source.utf8 for file in program.files):
        return found
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
    return found
