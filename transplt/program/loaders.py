"""What the loaders of a program are for: which of them only training reads, and where a share of each can be taken."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeGuard

from transplt.program.given import defaults, value_of
from transplt.program.gradients import without_gradients
from transplt.program.loops import Loop, loop_head, loops_around, own_body
from transplt.program.program import LOADERS, File, Function, Program, Value, Variable, enclosing_function
from transplt.program.training import Loader, Training, loaders_of
from transplt.program.values import values_of
from transplt.syntax.asks import keyword_of, last_name, place_in_block
from transplt.syntax.scan import FUNCTIONS, chain, parent

_LEAVES = (ast.Continue, ast.Return, ast.Break)
#: Calls that a loader may come through.
_DEEPEST = 12


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """A place that goes through loaders. `trains`: None where it may train or not, as a caller wants."""

    file: File
    node: ast.expr
    loop: Loop | None
    loader: Loader
    trains: bool | None


@dataclass(frozen=True, slots=True, eq=False)
class Share:
    """Where a share is taken: behind the statement that stores a loader, else around the expression that is one."""

    file: File
    stored: ast.Assign | None
    loader: ast.expr


@dataclass(slots=True)
class Shares:
    """How data are shared out, by the ids of the calls of DataLoader: where; or why not, and what to do."""

    loaders: dict[int, Loader]
    places: dict[int, list[Share]]
    whole: dict[int, tuple[str, str]]
    evaluated: set[int]  # those that nothing trains with, in loops that train with others

    def has(self, loader: Loader) -> bool:
        """True for a loader that is shared out."""
        return id(loader.call) in self.places


def readings(training: Training) -> list[Reading]:
    """All places of a program that go through loaders, by file and place, once for each loader."""
    found: list[Reading] = []
    program = training.program
    loops = {(id(loop), id(loader.call)) for _, loop, loaders in training.loops for loader in loaders}
    for file in program.files:
        for node, around in _read(file):
            for loader in loaders_of(program, file, node):
                loop = next((each for each in around if (id(each), id(loader.call)) in loops), None)
                trains = _trains(training, file, loop, loader) if loop is not None else False
                found.append(Reading(file, node, loop, loader, trains))
    return found


def _read(file: File) -> Iterator[tuple[ast.expr, list[Loop]]]:
    """What loops, comprehensions and calls of a file go through, each once, with the loops that read by it: the loop's
    own head stands for what it holds. What a generator goes through for its caller is read there.
    """
    heads: set[int] = set()
    for node in ast.walk(file.scan.tree):
        if isinstance(node, (ast.For, ast.AsyncFor)):
            heads.update(map(id, ast.walk(node.iter)))
            if not any(isinstance(inner, ast.Yield) for inner in own_body(node)):
                yield node.iter, [node]
    for node in ast.walk(file.scan.tree):
        if isinstance(node, ast.comprehension):
            heads.update(map(id, ast.walk(node.iter)))
            yield node.iter, []
    for call in file.scan.calls:
        if id(call) not in heads and last_name(call.func) in ("next", "list", "__next__"):
            over = call.args[0] if call.args else call.func.value if isinstance(call.func, ast.Attribute) else None
            if over is not None:
                yield over, loops_around(call)


# --- whether a loop trains with a loader ------------------------------------------------------------------------------


def _trains(training: Training, file: File, loop: Loop, loader: Loader) -> bool | None:
    """Whether a training loop trains with a loader, as its callers want it."""
    function = enclosing_function(loop)
    guards = _guards(training, file, loop)
    key = _under_key(training.program, file, loop, loader, guards)
    if key is not None:
        return key
    if function is None or not guards:
        return True
    ways = {
        _wanted(training.program, at, call, function, guards)
        for at, call in training.program.call_sites.get(function, ())
        if _hands_over(training.program, at, call, function, loop, loader)
    }
    if not ways:
        others = any(_asks_mode(guard) for guard, _ in guards)
        return None if others and len(_loaders_in(training, loop)) > 1 else True
    return next(iter(ways)) if len(ways) == 1 else None


def _loaders_in(training: Training, loop: Loop) -> list[Loader]:
    return [loader for _, at, loaders in training.loops if at is loop for loader in loaders]


def _guards(training: Training, file: File, loop: Loop) -> list[tuple[ast.expr, bool]]:
    """The conditions of a loop's function under which it trains, each with whether it has to hold."""
    found: list[tuple[ast.expr, bool]] = []
    passes = [node for node in ast.walk(loop) if isinstance(node, ast.Call) and training.runs(file, node)]
    for call in passes[:1]:
        below: ast.AST = call
        for above in chain(call):
            if isinstance(above, FUNCTIONS):
                break
            if isinstance(above, ast.If) and below is not above.test:
                found.append((above.test, below in above.body))
            if isinstance(below, ast.stmt) and loop in chain(below):
                block, place = place_in_block(below)
                tests = [each for each in block[:place] if isinstance(each, ast.If)]
                found += [(each.test, False) for each in tests if isinstance(each.body[-1], _LEAVES)]
            below = above
    return found


def _asks_mode(test: ast.expr) -> bool:
    """True for a condition on what a function was asked to do: a parameter, `model.training`."""
    names = [node for node in ast.walk(test) if isinstance(node, (ast.Name, ast.Attribute))]
    return any(last_name(node) in ("training", "is_grad_enabled") for node in names) or any(
        word in last_name(node).lower() for node in names for word in ("train", "mode", "phase", "split", "eval", "val")
    )


def _hands_over(program: Program, file: File, call: ast.Call, function: Function, loop: Loop, loader: Loader) -> bool:
    """True for a call of a function that gives it the loader its loop reads."""
    read = {node.id for node in ast.walk(loop_head(loop)) if isinstance(node, ast.Name)}
    given = [value for name, value in program.arguments(call, function) if name in read]
    return any(found.call is loader.call for value in given for found in loaders_of(program, file, value))


def _wanted(
    program: Program, file: File, call: ast.Call, function: Function, guards: list[tuple[ast.expr, bool]]
) -> bool | None:
    """Whether a call of a function wants it to train; None where that cannot be seen."""
    if without_gradients(call):
        return False
    given: dict[str, ast.expr] = dict(defaults(function))
    given |= {name: _made(program, file, value) for name, value in program.arguments(call, function)}
    unknown = False
    for test, holds in guards:
        value = value_of(test, given)
        if value is not None and value is not holds:
            return False
        unknown |= value is None and any(isinstance(node, ast.Name) and node.id in given for node in ast.walk(test))
    return None if unknown else True


def _made(program: Program, file: File, value: ast.expr) -> ast.expr:
    """The call or constant that a name stands for, where it is one; else what it is."""
    held = [each for _, each in values_of(program, file, value)] if isinstance(value, (ast.Name, ast.Attribute)) else []
    calls = bool(held) and all(isinstance(each, ast.Call) for each in held)
    same = bool(held) and all(isinstance(each, ast.Constant) for each in held) and len({*map(ast.dump, held)}) == 1
    return held[0] if calls or same else value


def _under_key(
    program: Program, file: File, loop: Loop, loader: Loader, guards: list[tuple[ast.expr, bool]]
) -> bool | None:
    """Whether `for batch in loaders[phase]` trains with a loader, where it does so `if phase == "train"`."""
    for node in ast.walk(loop_head(loop)):
        if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Name):
            continue
        for test, holds in guards:
            equal = isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq)
            key = test.comparators[0] if isinstance(test, ast.Compare) and equal else None
            same = isinstance(test, ast.Compare) and getattr(test.left, "id", "") == node.slice.id
            if same and isinstance(key, ast.Constant) and holds:
                there = loaders_of(program, file, ast.Subscript(value=node.value, slice=key, ctx=node.ctx))
                return any(found.call is loader.call for found in there)
    return None


# --- where a share is taken -------------------------------------------------------------------------------------------


def shares_out(
    training: Training, why_not: Callable[[Loader], tuple[str, str] | None], unseen: tuple[str, str]
) -> Shares:
    """The shares of the loaders that a training loop reads; `unseen` is the reason where what a loader is for cannot be
    seen."""
    loaders = {id(loader.call): loader for _, _, every in training.loops for loader in every}
    found = Shares(loaders, {}, {}, set())
    read = readings(training) if loaders else []
    for key, loader in loaders.items():
        if all(reading.trains is False for reading in read if reading.loader.call is loader.call):
            found.evaluated.add(key)
        elif (why := why_not(loader)) is not None:
            found.whole[key] = why
        elif (places := shares_of(training, loader, read)) is None:
            found.whole[key] = unseen
        else:
            found.places[key] = places
    return found


def evaluating_calls(training: Training, found: Shares) -> frozenset[int]:
    """The calls, by their ids, that give a function with a training loop only loaders that nothing trains with."""
    program = training.program
    functions = {function for _, loop, _ in training.loops if (function := enclosing_function(loop)) is not None}
    calls = set()
    for function in functions if found.evaluated else ():
        for file, call in program.call_sites.get(function, ()):
            values = [value for _, value in program.arguments(call, function)]
            given = [each for value in values for each in loaders_of(program, file, value)]
            if given and all(id(each.call) in found.evaluated for each in given):
                calls.add(id(call))
    return frozenset(calls)


def shares_of(training: Training, loader: Loader, every: list[Reading]) -> list[Share] | None:
    """Where to take each rank's share of a loader, so that training reads the shares and nothing else does; None where
    that cannot be seen."""
    program = training.program
    own = [reading for reading in every if reading.loader.call is loader.call]
    if any(reading.trains is None for reading in own) or not any(reading.trains for reading in own):
        return None
    several = loader.by_key or _target(parent(loader.call)) is not None
    if several and any(_guards(training, each.file, each.loop) for each in own if each.loop is not None):
        return None
    # One batch that all ranks look at, outside of training, may be one of the share.
    if all(reading.trains or _looks(reading) for reading in own):
        stored = parent(loader.call)
        return [Share(loader.file, stored if _plain(stored) else None, loader.call)]
    chosen: list[Share] = []
    rest = [reading for reading in own if reading.trains]
    for file, assign, slot in _holders(program, loader):
        through = [reading for reading in own if not _still_reads(program, reading, slot)]
        if all(reading.trains for reading in through) and any(reading in rest for reading in through):
            chosen.append(Share(file, assign, assign.value))
            rest = [reading for reading in rest if reading not in through]
    for reading in rest:
        read = _name_read(program, reading)
        if read is None:
            return None
        chosen.append(Share(reading.file, None, read))
    return chosen


def _looks(reading: Reading) -> bool:
    call = parent(reading.node)
    return isinstance(call, ast.Call) and last_name(call.func) == "next" and not loops_around(call)


def _target(stored: ast.AST) -> ast.expr | None:
    """What a loader is stored in, by an entry that is not named."""
    target = stored.targets[0] if isinstance(stored, ast.Assign) else None
    return target if isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Constant) else None


def _plain(stored: ast.AST) -> TypeGuard[ast.Assign]:
    """True for `x = ...` and `self.x = ...`."""
    if not isinstance(stored, ast.Assign) or len(stored.targets) != 1:
        return False
    node = stored.targets[0]
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _holders(program: Program, loader: Loader) -> Iterator[tuple[File, ast.Assign, Variable]]:
    """The statements that store the loader that a function of the program gives them, with the variable."""
    for slot, values in program.values.items():
        for value in values:
            stored = parent(value.node)
            if value.index is not None or not isinstance(value.node, ast.Call) or not _plain(stored):
                continue
            gives = value.node is not loader.call and is_loader(program, value.file, value.node)
            if gives and _is_among(program, value.file, value.node, loader):
                yield value.file, stored, slot


def is_loader(program: Program, file: File, node: ast.expr, seen: tuple[ast.expr, ...] = ()) -> bool:
    """True for an expression that is a loader, and not what goes through one or holds several."""
    if node in seen or len(seen) > _DEEPEST:
        return False
    seen = (*seen, node)
    if isinstance(node, ast.Call):
        if file.names.qualified(node.func) in LOADERS:
            return True
        callee = program.callee(file, node)
        if not isinstance(callee, FUNCTIONS) or _yields(callee):
            return False
        returned = list(program.returns(callee))
        return bool(returned) and all(is_loader(program, program.owner[callee], each, seen) for each in returned)
    if isinstance(node, (ast.Name, ast.Attribute)):
        slot = program.slot(file, node)
        values = program.values.get(slot, ()) if slot else ()
        return bool(values) and all(
            is_loader(program, value.file, value.node, seen) if value.index is None else _is_item(program, value, seen)
            for value in values
        )
    if isinstance(node, ast.IfExp):
        return all(is_loader(program, file, each, seen) for each in (node.body, node.orelse))
    return False


def _is_item(program: Program, value: Value, seen: tuple[ast.expr, ...]) -> bool:
    """The same for an item of what a call of the program returns."""
    callee = program.callee(value.file, value.node) if isinstance(value.node, ast.Call) else None
    returned = list(program.returns(callee)) if isinstance(callee, FUNCTIONS) and not _yields(callee) else []
    index = value.index
    for each in returned:
        item = (
            each.elts[index] if isinstance(each, ast.Tuple) and index is not None and index < len(each.elts) else None
        )
        if item is None or callee is None or not is_loader(program, program.owner[callee], item, seen):
            return False
    return bool(returned)


def _yields(function: Function) -> bool:
    return any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in ast.walk(function))


def _is_among(program: Program, file: File, node: ast.expr, loader: Loader) -> bool:
    """True for an expression that may stand for a loader."""
    return any(found.call is loader.call for found in loaders_of(program, file, node))


def _still_reads(program: Program, reading: Reading, slot: Variable) -> bool:
    """True for a place that reads a loader by another way than through a variable."""
    found = loaders_of(program, reading.file, reading.node, without=frozenset({slot}))
    return any(each.call is reading.loader.call for each in found)


def _name_read(program: Program, reading: Reading) -> ast.expr | None:
    """The name, or the call of DataLoader, by which a place reads a loader: in enumerate, tqdm, zip and the like."""
    pending: list[ast.expr] = [reading.node]
    while pending:
        node = pending.pop(0)
        if is_loader(program, reading.file, node):
            if _is_among(program, reading.file, node, reading.loader):
                return node
        elif isinstance(node, ast.Call):
            pending += [each for each in node.args if not isinstance(each, ast.Starred)]
            value = keyword_of(node, "iterable")
            pending += [value] if value is not None else []
    return None
