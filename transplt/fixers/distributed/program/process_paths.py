"""Paths that each process makes for itself: temporary files and folders, names after the clock, random names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import IntEnum

from transplt.base.grouped import grouped
from transplt.fixers.distributed.program.outputs import opens_to_write, written_place
from transplt.program.program import File, Program, Variable
from transplt.syntax.nodes import arguments_of, by_place, inner_nodes, is_none, last_name
from transplt.syntax.scan import FUNCTIONS, parent

_TEMPORARY = frozenset(f"tempfile.{name}" for name in "mkdtemp mkstemp TemporaryDirectory NamedTemporaryFile".split())
_NAMED = frozenset(
    "uuid.uuid1 uuid.uuid4 datetime.datetime.now datetime.datetime.utcnow datetime.datetime.today datetime.date.today "
    "time.time time.time_ns time.strftime time.ctime time.asctime os.getpid secrets.token_hex "
    "glob.glob os.listdir".split()
)
_FOLDERS = frozenset({"makedirs", "mkdir", "SummaryWriter"})


class Own(IntEnum):
    """Whether each process has a path of its own: in no call, in some, or always."""

    NEVER = 0
    SOMETIMES = 1
    ALWAYS = 2


class Places:
    """Of which paths of a program each process has its own."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.temporary = any(b"tempfile" in file.source.utf8 for file in program.files)

    def is_own(self, file: File, path: ast.expr | None) -> Own:
        """Whether a path lies in a temporary file or folder of each process."""
        if path is None or not self.temporary:
            return Own.NEVER
        return self._own(file, path, frozenset())

    def _own(self, file: File, path: ast.expr, seen: frozenset[Variable | ast.AST]) -> Own:
        if isinstance(path, ast.Call) and file.names.qualified(path.func) in _TEMPORARY:
            return Own.ALWAYS
        if isinstance(path, (ast.Name, ast.Attribute)) and (slot := self.program.slot(file, path)) is not None:
            held = [] if slot in seen else [(each.file, each.node) for each in self.program.values.get(slot, ())]
            kinds = {self._own(at, value, seen | {slot}) for at, value in held if not is_none(value)}
            return kinds.pop() if len(kinds) == 1 else Own.SOMETIMES if kinds else Own.NEVER
        callee = self.program.callee(file, path) if isinstance(path, ast.Call) else None
        if isinstance(callee, FUNCTIONS) and callee not in seen:
            owner = self.program.owner[callee]
            returned = {self._own(owner, each, seen | {callee}) for each in self.program.returns(callee)}
            return returned.pop() if len(returned) == 1 else Own.SOMETIMES if returned else Own.NEVER
        inner = [each for each in ast.iter_child_nodes(path) if isinstance(each, ast.expr)]
        return max((self._own(file, each, seen) for each in inner), default=Own.NEVER)


# --- names after the clock, and random ones ---------------------------------------------------------------------------


def names_written_to(program: Program, file: File) -> Iterator[ast.Assign]:
    """The statements of a file that choose a name after the clock, or a random one, under which the program writes."""
    written = program.once(_paths_written_to)
    for node in inner_nodes(file.scan.tree, ast.Assign) if written else ():
        calls = inner_nodes(node.value, ast.Call)
        if _variable(program, file, node.targets[0]) in written and any(is_named(file, call) for call in calls):
            yield node


def _variable(program: Program, file: File, node: ast.AST) -> Variable | None:
    """The variable that a node is; `args.run` of an object that no class of the program makes goes by its spelling."""
    slot = program.slot(file, node)
    if slot is None and isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return "", "", f"{node.value.id}.{node.attr}"
    return slot


def _arguments(program: Program) -> dict[Variable, list[tuple[File, ast.expr]]]:
    """What `args.run` and the like are given."""
    stores = ((file, store, _variable(program, file, store)) for file in program.files for store in file.scan.stores)
    found = ((slot, file, getattr(parent(store), "value", None)) for file, store, slot in stores if slot is not None)
    return grouped((slot, (file, value)) for slot, file, value in found if slot[0] == "" and value is not None)


def _paths_written_to(program: Program) -> frozenset[Variable]:
    """The variables of paths that a program writes to, nothing where it chooses no such name."""
    named = any(is_named(file, call) for file in program.files for call in file.scan.calls)
    return frozenset(written_to(program)) if named else frozenset()


def is_named(file: File, call: ast.Call) -> bool:
    """True for a call that gives another number or text on each process."""
    return file.names.qualified(call.func) in _NAMED


def name_within(file: File, value: ast.expr) -> ast.expr:
    """The name in what is made of it: `Logger(path)` is an object of each process, of which `path` is the name."""
    while isinstance(value, ast.Call) and last_name(value.func)[:1].isupper():
        calls = ((each, call) for each in arguments_of(value) for call in inner_nodes(each, ast.Call))
        inner = next((each for each, call in calls if is_named(file, call)), None)
        if inner is None:
            break
        value = inner
    return value


def written_to(program: Program) -> Iterator[Variable]:
    """The variables of which the paths are made that a program writes to."""
    pending: list[tuple[File, ast.expr]] = []
    for file in program.files:
        for call in by_place(file.scan.calls):
            folder = last_name(call.func) in _FOLDERS
            method = isinstance(call.func, ast.Attribute) and file.names.qualified(call.func) is None
            made = [call.func.value] if method and isinstance(call.func, ast.Attribute) else arguments_of(call)
            paths = made if folder else [written_place(file, call)]
            paths += call.args[:1] if opens_to_write(file, call) else []
            pending += [(file, path) for path in paths if path is not None]
    arguments = _arguments(program)
    seen: set[Variable] = set()
    entered: set[ast.AST] = set()
    while pending:
        file, path = pending.pop()
        for node in ast.walk(path):
            callee = program.callee(file, node) if isinstance(node, ast.Call) else None
            if isinstance(callee, FUNCTIONS) and callee not in entered:
                entered.add(callee)
                pending += [(program.owner[callee], each) for each in program.returns(callee)]
            slot = _variable(program, file, node)
            if slot is not None and slot not in seen:
                seen.add(slot)
                yield slot
                pending += [(value.file, value.node) for value in program.values.get(slot, ())]
                pending += arguments.get(slot, ())
