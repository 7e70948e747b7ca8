"""What the loaders of a program are for: which of them only training reads, and where a share of each can be taken."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from transplt.program.call_conditions import defaults, value_of
from transplt.program.gradients import without_gradients
from transplt.program.loops import Loop, loop_head, loops_around, own_body
from transplt.program.phases import is_plain_store, made_under_keys, trained_keys
from transplt.program.program import LOADERS, File, Function, Program, ProgramValue, Variable, enclosing_function
from transplt.program.training import Key, Loader, Training, loaders_of
from transplt.program.variable_values import values_of
from transplt.syntax.nodes import inner_nodes, keyword_of, last_name, place_in_block
from transplt.syntax.scan import FUNCTIONS, chain, parent

_LEAVES = (ast.Continue, ast.Return, ast.Break)
#: Calls that a loader may come through.
_DEEPEST = 12


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """A place that goes through loaders. `trains`: None where it may train or not, as a caller wants. `keys` are those
    under which it trains, or reads where it does not: of one call that makes several loaders."""

    file: File
    node: ast.expr
    loop: Loop | None
    loader: Loader
    trains: bool | None
    keys: frozenset[Key]


@dataclass(frozen=True, slots=True, eq=False)
class Share:
    """Where a share is taken: behind the statement that stores a loader, else around the expression that is one. Where
    a statement stores several, it is `holder`, or those of its entries under `keys`."""

    file: File
    stored: ast.stmt | None
    loader: ast.expr
    holder: ast.expr | None = None
    keys: tuple[Key, ...] = ()


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
                guards = _guards(training, file, loop) if loop is not None else []
                keys = trained_keys(program, file, loop, loader, guards) if loop is not None else None
                trains = bool(keys) if keys is not None else loop is not None and _trains(training, file, loop, loader)
                found.append(Reading(file, node, loop, loader, trains, keys or frozenset(loader.key)))
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
    if function is None or not guards:
        return True
    ways = {
        _wanted(training.program, at, call, function, guards)
        for at, call in training.program.call_sites.get(function, ())
        if _hands_over(training.program, at, call, function, loop, loader)
    }
    if not ways:
        others = any(_asks_mode(guard) for guard, _ in guards)
        several = sum(len(loaders) for _, at, loaders in training.loops if at is loop) > 1
        return None if others and several else True
    return next(iter(ways)) if len(ways) == 1 else None


def _guards(training: Training, file: File, loop: Loop) -> list[tuple[ast.expr, bool]]:
    """The conditions of a loop's function under which it trains, each with whether it has to hold."""
    found: list[tuple[ast.expr, bool]] = []
    passes = [node for node in inner_nodes(loop, ast.Call) if training.runs(file, node)]
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
    read = {node.id for node in inner_nodes(loop_head(loop), ast.Name)}
    given = [value for name, value in program.arguments(call, function) if name in read]
    return any(_is_among(program, file, value, loader) for value in given)


def _wanted(
    program: Program, file: File, call: ast.Call, function: Function, guards: list[tuple[ast.expr, bool]]
) -> bool | None:
    """Whether a call of a function wants it to train; None where that cannot be seen."""
    if without_gradients(call):
        return False
    given: dict[str, ast.expr] = dict(defaults(function))
    for name, value in program.arguments(call, function):
        # The call or constant that a name stands for, where it is one; else what it is.
        named = isinstance(value, (ast.Name, ast.Attribute))
        held = [each for _, each in values_of(program, file, value)] if named else []
        calls = all(isinstance(each, ast.Call) for each in held)
        same = all(isinstance(each, ast.Constant) for each in held) and len({*map(ast.dump, held)}) == 1
        given[name] = held[0] if held and (calls or same) else value
    unknown = False
    for test, holds in guards:
        answer = value_of(test, given)
        if answer is not None and answer is not holds:
            return False
        unknown |= answer is None and any(node.id in given for node in inner_nodes(test, ast.Name))
    return None if unknown else True


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
    own = [reading for reading in every if reading.loader.call is loader.call]
    if any(reading.trains is None for reading in own) or not any(reading.trains for reading in own):
        return None
    stored = parent(loader.call)
    evaluates = any(not each.trains and not looks_at_one(each) for each in own)
    guarded = any(_guards(training, each.file, each.loop) for each in own if each.loop is not None)
    if any(each.loader.by_key for each in own) and (guarded or evaluates):
        return _shares_of_entries(training.program, loader, own)
    if all(reading.trains or looks_at_one(reading) for reading in own):
        return [Share(loader.file, stored if is_plain_store(stored) else None, loader.call)]
    return _shares_on_the_way(training.program, loader, own)


def _shares_on_the_way(program: Program, loader: Loader, own: list[Reading]) -> list[Share] | None:
    """The statements between a loader and what trains with it that nothing else reads through, and where there is none
    the places themselves; None where one of them does not name the loader."""
    chosen: list[Share] = []
    rest = [reading for reading in own if reading.trains]
    for file, assign, slot in _holders(program, loader):
        without = frozenset({slot})
        through = [each for each in own if not _is_among(program, each.file, each.node, loader, without)]
        if all(reading.trains for reading in through) and any(reading in rest for reading in through):
            target = assign.targets[0]
            named = next((each for each in getattr(target, "elts", ()) if program.slot(file, each) == slot), None)
            chosen.append(Share(file, assign, named or assign.value, named))
            rest = [reading for reading in rest if reading not in through]
    for reading in rest:
        read = name_read(program, reading)
        if read is None:
            return None
        chosen.append(Share(reading.file, None, read))
    return chosen


def _shares_of_entries(program: Program, loader: Loader, own: list[Reading]) -> list[Share] | None:
    """The entries that training reads of several loaders that one call makes, where nothing else reads them."""
    trained = {key for each in own if each.trains for key in each.keys}
    others = {key for each in own if not each.trains and not looks_at_one(each) for key in each.keys}
    made = made_under_keys(program, loader)
    if made is None or None in trained | others or trained & others or not trained <= set(made[1]):
        return None
    file, stored, holder = made[0]
    return [Share(file, stored, loader.call, holder, tuple(key for key in made[1] if key in trained))]


def looks_at_one(reading: Reading) -> bool:
    """True for one batch that all ranks look at, outside of training: it may be one of the share."""
    call = parent(reading.node)
    return isinstance(call, ast.Call) and last_name(call.func) == "next" and not loops_around(call)


def _holders(program: Program, loader: Loader) -> Iterator[tuple[File, ast.Assign, Variable]]:
    """The statements that store the loader that a function of the program gives them, with the variable."""
    for slot, values in program.values.items():
        for value in values:
            stored = parent(value.node)
            if not isinstance(value.node, ast.Call):
                continue
            match stored:
                case ast.Assign(targets=[ast.Tuple(elts=every)]) if value.index is not None and len(values) == 1:
                    named = [each for each in every if program.slot(value.file, each) == slot]
                    if _is_item(program, value, ()) and any(
                        _is_among(program, value.file, each, loader) for each in named
                    ):
                        yield value.file, stored, slot
            if value.index is not None or not is_plain_store(stored):
                continue
            gives = value.node is not loader.call and is_loader(program, value.file, value.node)
            if gives and _is_among(program, value.file, value.node, loader):
                yield value.file, stored, slot


def is_loader(program: Program, file: File, node: ast.expr, seen: tuple[ast.expr, ...] = ()) -> bool:
    """True for an expression that is a loader, and not what goes through one or holds several."""
    if node in seen or len(seen) > _DEEPEST:
        return False
    seen = (*seen, node)
    match node:
        case ast.Call() if file.names.qualified(node.func) in LOADERS:
            return True
        case ast.Call():
            callee = program.callee(file, node)
            if not isinstance(callee, FUNCTIONS) or _yields(callee):
                return False
            returned = list(program.returns(callee))
            return bool(returned) and all(is_loader(program, program.owner[callee], each, seen) for each in returned)
        case ast.Name() | ast.Attribute():
            slot = program.slot(file, node)
            values = program.values.get(slot, ()) if slot else ()
            return bool(values) and all(
                _is_item(program, each, seen) if each.index is not None
                else is_loader(program, each.file, each.node, seen)
                for each in values
            )  # fmt: skip
        case ast.IfExp():
            return all(is_loader(program, file, each, seen) for each in (node.body, node.orelse))
    return False


def _is_item(program: Program, value: ProgramValue, seen: tuple[ast.expr, ...]) -> bool:
    """The same for an item of what a call of the program returns."""
    callee = program.callee(value.file, value.node) if isinstance(value.node, ast.Call) else None
    returned = list(program.returns(callee)) if isinstance(callee, FUNCTIONS) and not _yields(callee) else []
    for each in returned:
        elements = each.elts if isinstance(each, ast.Tuple) else []
        if value.index is None or callee is None or value.index >= len(elements):
            return False
        if not is_loader(program, program.owner[callee], elements[value.index], seen):
            return False
    return bool(returned)


def _yields(function: Function) -> bool:
    return any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in ast.walk(function))


def _is_among(
    program: Program, file: File, node: ast.expr, loader: Loader, without: frozenset[Variable] = frozenset()
) -> bool:
    """True for an expression that may stand for a loader, by another way than through some variables."""
    return any(found.call is loader.call for found in loaders_of(program, file, node, without=without))


def name_read(program: Program, reading: Reading) -> ast.expr | None:
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
