"""What of a program trains: backward passes, the functions around them, the loops over data, the epochs."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from transplt.program.call_conditions import defaults
from transplt.program.loops import Loop, loops_around, own_body
from transplt.program.program import LOADERS, File, Program, Variable, enclosing_function, key_of
from transplt.program.steps import backward_passes, runs_backward
from transplt.rules.torch_callables import names_of
from transplt.syntax.nodes import by_place, inner_nodes, plain_name
from transplt.syntax.scan import FUNCTIONS, chain, parent

#: Methods that models have too: a call of one says nothing about a function of the same name.
_MODEL_METHODS = frozenset({"train", "eval", "step", "forward", "update", "backward", "fit", "__call__"})
#: Functions of Python that give no loader back.
_OF_PYTHON = names_of("builtins") | {"range", "min", "max"}
#: A value that is an item of itself (`x = f(x[0])` in a loop) would be followed for ever.
_DEEPEST_PATH = 8


Key = int | str | None
Path = tuple[Key, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Loader:
    """A call of DataLoader. Where one call makes several loaders (in a comprehension, in a loop over keys), `key` holds
    the key of the one that is meant, None where that is not written out."""

    file: File
    call: ast.Call
    key: Path = ()

    @property
    def by_key(self) -> bool:
        """True when one call makes several loaders."""
        return bool(self.key)


@dataclass(slots=True)
class Training:
    """What trains. `loops` are the loops over training data with the loaders that they read."""

    program: Program
    backwards: list[tuple[File, ast.Call]] = field(default_factory=list)
    functions: set[ast.AST] = field(default_factory=set)
    regions: list[tuple[File, Loop]] = field(default_factory=list)
    loops: list[tuple[File, Loop, tuple[Loader, ...]]] = field(default_factory=list)
    methods: set[str] = field(default_factory=set)  # the names of those functions that are methods

    def trains(self, file: File, call: ast.Call) -> bool:
        """True for a call of a function of the program in which something trains."""
        callee = self.program.callee(file, call)
        if isinstance(callee, ast.ClassDef):
            return any(isinstance(node, FUNCTIONS) and node in self.functions for node in callee.body)
        return self._runs_training(file, call, callee)

    def runs(self, file: File, call: ast.Call) -> bool:
        """True for a call that trains: a backward pass, or a call of what has one. Making a trainer is not training."""
        if runs_backward(file, call):
            return True
        callee = self.program.callee(file, call)
        return not isinstance(callee, ast.ClassDef) and self._runs_training(file, call, callee)

    def first_in(self, file: File, block: list[ast.stmt]) -> int:
        """Index of the first statement of a block that trains; its length when none does."""
        training = (
            index for index, item in enumerate(block)
            if not isinstance(item, (*FUNCTIONS, ast.ClassDef)) and self.is_in(file, item)
        )  # fmt: skip
        return next(training, len(block))

    def is_in(self, file: File, node: ast.AST) -> bool:
        """True for code with a call that trains."""
        return any(self.runs(file, each) for each in inner_nodes(node, ast.Call))

    def _runs_training(self, file: File, call: ast.Call, callee: ast.AST | None) -> bool:
        if callee is not None:
            return callee in self.functions
        if self._is_given_training(file, call) or self._is_handed_over(file, call):
            return True
        cls = self.program.class_of(file, call.func)
        if cls is not None and self.program.method(cls, "forward") in self.functions:
            return True  # a module whose forward pass trains
        if commands := self.program.commands(file, call.func):
            return any(function in self.functions for function in commands)
        if isinstance(call.func, ast.Attribute) and call.func.attr not in _MODEL_METHODS:
            if file.names.qualified(call.func) is not None:
                return False
            return call.func.attr in self.methods
        return False

    def _is_given_training(self, file: File, call: ast.Call) -> bool:
        """True for `optimizer.step(closure)`: what it is given trains."""
        for argument in call.args:
            if isinstance(argument, ast.Name):
                found = file.names.lookup(argument.id, file.scan.scope_of(argument))
                if found is not None and any(binding.node in self.functions for binding in found[1]):
                    return True
            elif isinstance(argument, ast.Attribute) and self.program.definition(file, argument) in self.functions:
                return True
        return False

    def _is_handed_over(self, file: File, call: ast.Call) -> bool:
        """True for `step(model, x)` in a function that is given what trains: `fit(model, step=train_step)`."""
        slot = self.program.slot(file, call.func) if isinstance(call.func, ast.Name) else None
        values = self.program.values.get(slot, ()) if slot is not None else ()
        given = [(each.file, each.node) for each in values if each.index is None]
        if isinstance(call.func, ast.Name) and (function := enclosing_function(call)) is not None:
            given += [(file, value) for name, value in defaults(function) if name == call.func.id]
        named = ((at, each) for at, each in given if isinstance(each, (ast.Name, ast.Attribute)))
        return any(self.program.named(at, each) in self.functions for at, each in named)

    def in_region(self, file: File, node: ast.AST) -> bool:
        """True for code inside of a loop that trains, in the same function."""
        around = loops_around(node)
        return any(at is file and loop in around for at, loop in self.regions)


def find_training(program: Program) -> Training:
    """Look for what trains in all files of the program."""
    training = Training(program)
    for file in program.files:
        training.backwards += [(file, call) for call in backward_passes(file.scan)]
        for call in file.scan.calls:
            if runs_backward(file, call):
                _enclosing(training, call)
    changed = True
    while changed:
        changed = False
        for file in program.files:
            for call in file.scan.calls:
                function = enclosing_function(call)
                if function is not None and function not in training.functions and training.runs(file, call):
                    _enclosing(training, call)
                    changed = True
    _loops(training)
    return training


def _enclosing(training: Training, node: ast.AST) -> None:
    function = enclosing_function(node)
    if function is not None:
        training.functions.add(function)
        training.methods.update({function.name} if isinstance(parent(function), ast.ClassDef) else ())


def _loops(training: Training) -> None:
    for file in training.program.files:
        calls = (call for call in by_place(file.scan.calls) if training.runs(file, call))
        loops = dict.fromkeys(loop for call in calls for loop in loops_around(call))
        training.regions += [(file, loop) for loop in loops]
    read = ((file, loop, _read_loaders(training.program, file, loop)) for file, loop in training.regions)
    training.loops += [each for each in read if each[2]]


def _read_loaders(program: Program, file: File, loop: Loop) -> tuple[Loader, ...]:
    """The loaders that a loop reads: by its header, or by `next(...)` in its own body."""
    sources: list[ast.expr] = [loop.iter] if not isinstance(loop, ast.While) else []
    for node in own_body(loop):
        match node:
            case ast.Call(func=ast.Name(id="next"), args=[over, *_]) | ast.Call(
                func=ast.Attribute(value=over, attr="__next__")
            ):
                sources.append(over)
    found: dict[int, Loader] = {}
    for source in sources:
        for loader in loaders_of(program, file, source):
            found.setdefault(id(loader.call), loader)
    return tuple(found.values())


def loaders_of(
    program: Program, file: File, node: ast.expr, without: frozenset[Variable] = frozenset()
) -> list[Loader]:
    """The calls of DataLoader that an expression may stand for, through variables, helpers, dicts and tuples; but not
    through the variables `without`."""
    found: dict[tuple[int, Path], Loader] = {}
    seen: set[tuple[int, Path, Path]] = set()

    def visit(file: File, node: ast.expr | None, path: Path, by_key: Path = ()) -> None:
        if node is None or (id(node), path, by_key) in seen or len(seen) > 2000 or len(path) > _DEEPEST_PATH:
            return
        seen.add((id(node), path, by_key))
        match node:
            case ast.Call():
                called(file, node, path, by_key)
            case ast.Name() | ast.Attribute():
                slot = program.slot(file, node)
                if slot in without:
                    return
                if (dealt := entry_of_items(node)) is not None:
                    visit(file, dealt.value, (None, *path), by_key)
                for value in program.values.get(slot, ()) if slot else ():
                    visit(value.file, value.node, path if value.index is None else (value.index, *path), by_key)
                for key, entry in program.entries.get(slot, ()) if slot and path else ():
                    if _same_key(key, path[0]):
                        visit(entry.file, entry.node, path[1:], by_key if key is not None else path[:1])
            case ast.Subscript():
                visit(file, node.value, (key_of(node.slice), *path), by_key)
            case ast.Tuple() | ast.List():
                for index, item in enumerate(node.elts):
                    if not path or _same_key(index, path[0]):
                        visit(file, item, path[1:], by_key)
            case ast.Dict():
                for key_node, item in zip(node.keys, node.values, strict=True):
                    if not path or _same_key(key_of(key_node), path[0]):
                        visit(file, item, path[1:], by_key)
            case ast.DictComp(value=item) | ast.ListComp(elt=item) | ast.GeneratorExp(elt=item):
                visit(file, item, path[1:], path[:1] or (None,))
            case ast.IfExp():
                visit(file, node.body, path, by_key)
                visit(file, node.orelse, path, by_key)
            case ast.NamedExpr():
                visit(file, node.value, path, by_key)

    def called(file: File, call: ast.Call, path: Path, by_key: Path) -> None:
        if file.names.qualified(call.func) in LOADERS:
            found.setdefault((id(call), by_key), Loader(file, call, by_key))
            return
        callee = program.callee(file, call)
        if isinstance(callee, FUNCTIONS):
            for value in (*program.returns(callee), *_yielded_from(callee)):
                visit(program.owner[callee], value, path, by_key)
        elif callee is None and getattr(call.func, "id", "") not in (*_OF_PYTHON, "next"):  # that is a batch
            for argument in call.args:
                visit(file, argument.value if isinstance(argument, ast.Starred) else argument, path, by_key)
        elif isinstance(callee, ast.ClassDef):
            for _, argument in program.arguments(call, callee):  # a prefetcher around a loader
                visit(file, argument, (), by_key)

    visit(file, node, ())
    return list(found.values())


def entry_of_items(node: ast.expr) -> ast.Subscript | None:
    """`loaders[phase]` of `loader` below `for phase, loader in loaders.items()`."""
    for above in chain(node) if isinstance(node, ast.Name) else ():
        match above:
            case ast.For(
                target=ast.Tuple(elts=[key, ast.Name(id=name)]),
                iter=ast.Call(func=ast.Attribute(value=whole, attr="items"), args=[]),
            ) if name == plain_name(node):
                return ast.Subscript(value=whole, slice=key, ctx=ast.Load())
    return None


def _yielded_from(function: ast.AST) -> list[ast.expr]:
    """What a generator goes through to yield its items."""
    found = []
    for node in ast.walk(function):
        if isinstance(node, ast.YieldFrom):
            found.append(node.value)
        elif isinstance(node, ast.For) and any(isinstance(inner, ast.Yield) for inner in ast.walk(node)):
            found.append(node.iter)
    return found


def _same_key(key: object, wanted: object) -> bool:
    return key is None or wanted is None or key == wanted
