"""Where amp.initialize goes: behind the optimizers, with their models on the card, in front of every wrapper."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from transplt.fixers.amp.apex.card import MOVES, moves, was_moved
from transplt.fixers.amp.apex.models import models_given
from transplt.fixers.amp.apex.wraps import (
    WRAPPERS,
    deferrable,
    is_data_parallel,
    is_wrapper,
    movable,
    wrapped_elsewhere,
    wraps_model,
)
from transplt.program.loops import lifted, loops_around
from transplt.program.optimizers import binds
from transplt.program.program import File, Function, Program, Variable, enclosing_function, stores_of, text_of
from transplt.program.training import find_training
from transplt.program.variable_values import named, origins, parameter_of
from transplt.syntax.nodes import begins, block_of, plain_name
from transplt.syntax.scan import FUNCTIONS, parent, statement

_MADE = "assign it to its own variable, optimizer = torch.optim.X(model.parameters(), ...), and run transplt again"
_TOGETHER = (
    "create all models and then all optimizers in one function before the training, and run transplt again; or write "
    "one amp.initialize([models], [optimizers], ...) there by hand"
)
_ONCE = "start one process for each training, so that each calls amp.initialize once; or take --amp native"
_TRAINED = (
    "pass it model.parameters() of a model in the same function, and run transplt again; leave the training of "
    "tensors outside models in float32"
)
_UNWRAPPED = ("create the optimizer first, from the model without its wrapper, and wrap the model after it; then run "
              "transplt again")


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a program gets nothing: `why` and what to `do`, at a node of a file. `trains`: the files that train."""

    file: File
    node: ast.expr | ast.stmt
    why: str
    do: str
    trains: tuple[str, ...] = ()


class Refused(Exception):
    """Ends the reading of a program that gets nothing."""

    def __init__(self, file: File, node: ast.expr | ast.stmt, why: str, do: str) -> None:
        super().__init__(why)
        self.problem = Problem(file, node, why, do)


@dataclass(frozen=True, slots=True)
class Initialization:
    """Where amp.initialize goes: behind `after`, with the spellings of models and optimizers there.

    `held` maps every variable that holds one of the models to its first one; `updates` holds which models an optimizer
    updates. `moved` are wrapping statements that stand above `after` and have to move behind it. Those
    of `deferred` stand in a branch that does more, given with it, and keep the wrapper for later. `wraps` are all of
    them, and those behind `after`. With O1, which changes nothing of a model, `inside` are models that are in a
    DataParallel by then, and `perhaps` those that may be None.
    """

    file: File
    after: ast.stmt
    models: tuple[str, ...]
    optimizers: tuple[str, ...]
    held: dict[Variable, Variable]
    updates: dict[Variable, set[Variable]]
    wraps: tuple[ast.stmt, ...]
    inside: frozenset[str]
    perhaps: frozenset[str]
    moved: tuple[ast.stmt, ...] = ()
    deferred: tuple[tuple[ast.stmt, ast.stmt], ...] = ()

    @property
    def alone(self) -> bool:
        """True when amp.initialize is given something else than the variables of the models."""
        return bool(self.inside or self.perhaps)


@dataclass(frozen=True, slots=True)
class _Making:
    """What makes the optimizers of one function: `stores` are the variables where they are, `models` what they train,
    as it is spelled there."""

    program: Program
    file: File
    function: Function | None
    level: str
    stores: tuple[ast.expr, ...]
    models: dict[Variable, ast.expr]
    updates: dict[Variable, set[Variable]]

    def made(self, slot: Variable) -> list[ast.expr]:
        """Where the function gives a variable a model or an optimizer, and not None."""
        made = [node for at, node in _made(self.program, slot) if at is self.file]
        return [node for node in made if enclosing_function(node) is self.function]

    def stays_inside(self, file: File, wrapper: ast.stmt | ast.expr) -> bool:
        """True for a DataParallel that amp.initialize is given the inside of: O1 changes nothing of a model."""
        return self.level == "O1" and is_data_parallel(self.program, file, wrapper)


def origin_of(program: Program, file: File, node: ast.expr, level: str) -> Variable | None:
    """The variable in which what an expression holds was made, through parameters and other names; None if unsure.

    With O1, which leaves models as they are, also through what functions return.
    """
    slot = _origin(program, program.slot(file, node))
    seen = set[Variable]()
    while level == "O1" and slot is not None and slot not in seen:
        seen.add(slot)
        inner = _returned(program, slot)
        if inner is None:
            break
        slot = _origin(program, inner)
    return slot


def _origin(program: Program, given: Variable | None) -> Variable | None:
    found = origins(program, given)
    slot = found[0] if len(found) == 1 else None
    if slot is None or parameter_of(program, slot) is not None:
        return None
    values = [value.node for value in program.values.get(slot, ()) if not isinstance(value.node, ast.Constant)]
    return slot if any(named(value) is None for value in values) else None


def _returned(program: Program, slot: Variable) -> Variable | None:
    """The variable of a function that a variable is given from what it returns: `model, optimizer = build(args)`."""
    values = program.values.get(slot, ())
    if len(values) != 1 or not isinstance(values[0].node, ast.Call):
        return None
    callee = program.callee(values[0].file, values[0].node)
    if not isinstance(callee, FUNCTIONS):
        return None
    owner, index, found = program.owner[callee], values[0].index, set[Variable | None]()
    for result in program.returns(callee):
        items = result.elts if isinstance(result, ast.Tuple) else None
        item = items[index] if items and index is not None and index < len(items) else result
        named_so = isinstance(item, (ast.Name, ast.Attribute)) and (items is None) == (index is None)
        found.add(program.slot(owner, item) if named_so else None)
    return found.pop() if len(found) == 1 else None


def find_place(program: Program, optimizers: dict[Variable, tuple[File, ast.Call]], level: str) -> Initialization:
    """The one place for some optimizers, given with a backward pass of each; raises Refused where there is none."""
    making = _making(program, optimizers, level)
    file, stores = making.file, [statement(node) for node in making.stores]
    wraps: list[ast.stmt] = []
    inside: set[str] = set()
    setups = list(stores)
    for slot, base in making.models.items():
        if _is_inside(making, slot, wraps):
            inside.add(text_of(file, base))
        moved = moves(program, file, slot, making.function)
        setups += [*moved, *(item for item in map(statement, making.made(slot)) if item not in wraps)]
        if not moved and not was_moved(program, slot, set()):
            text = text_of(file, base)
            why = f"no code was found that puts {text} on the NPU, where amp.initialize needs it"
            raise Refused(file, base, why, f"move it there before the optimizer is created: {text}.to(device)")
    block = _block(file, setups)
    trains = program.once(find_training).first_in(file, block)
    if any((index := lifted(item, block)) is None or index >= trains for item in stores):
        raise Refused(file, making.stores[0], "the optimizer is created after the training has begun", _TOGETHER)
    last = max(index for item in setups if (index := lifted(item, block)) is not None and index < trains)
    _check_optimizers(making, block[: last + 1])
    perhaps = _perhaps(making, block[: last + 1])
    _check_once(making, block[last])
    held = {slot: slot for slot in making.models}
    for slot in making.models:
        _spread(program, held, slot)
    texts = tuple(text_of(file, base) for base in making.models.values())
    names = tuple(text_of(file, _made(program, origin)[0][1]) for origin in optimizers)
    around = tuple(sorted(wraps, key=begins))
    place = Initialization(file, block[last], texts, names, held, making.updates, around, frozenset(inside), perhaps)
    return _with_wrappers(place, making, block, last)


def _making(program: Program, optimizers: dict[Variable, tuple[File, ast.Call]], level: str) -> _Making:
    """The statements that make some optimizers, all in one function, and the models in them."""
    stores = {origin: _made(program, origin) for origin in optimizers}
    if not all(stores.values()):
        raise Refused(*next(iter(optimizers.values())), "the place where the optimizer is created was not found", _MADE)
    file, first = next(iter(stores.values()))[0]
    function = enclosing_function(first)
    every = [item for made in stores.values() for item in made]
    if any(at is not file or enclosing_function(node) is not function for at, node in every):
        why = "the optimizers are created in several functions, but amp.initialize is called once"
        raise Refused(file, first, why, _TOGETHER)
    models: dict[Variable, ast.expr] = {}
    updates: dict[Variable, set[Variable]] = {}
    for origin, made in stores.items():
        for _, node in made:
            bases = models_given(program, file, statement(node), origin)
            if bases is None:
                raise Refused(file, node, "the model that this optimizer trains was not found", _TRAINED)
            for base in bases:
                slot = program.slot(file, base)
                if slot is None or plain_name(base) == "self":
                    raise Refused(file, node, "the optimizer is created inside the model", _TOGETHER)
                models.setdefault(slot, base)
                updates.setdefault(origin, set()).add(slot)
    if not models:
        raise Refused(file, first, "the model that this optimizer trains was not found", _TRAINED)
    return _Making(program, file, function, level, tuple(node for _, node in every), models, updates)


def _made(program: Program, slot: Variable) -> list[tuple[File, ast.expr]]:
    """Where a variable is given a model or an optimizer: not by `optimizer = None` ahead of a branch that makes it."""
    return [(file, node) for file, node in stores_of(program, slot) if not isinstance(_stored(node), ast.Constant)]


def _stored(node: ast.expr) -> ast.expr | None:
    """What a name is given by its statement: `None` for the second one of `model, other = Net(), None`."""
    stmt, above = statement(node), parent(node)
    value = getattr(stmt, "value", None)
    if isinstance(above, ast.Tuple) and isinstance(value, ast.Tuple) and len(above.elts) == len(value.elts):
        value = value.elts[above.elts.index(node)]
    return value if isinstance(value, ast.expr) else None


def _is_inside(making: _Making, slot: Variable, wraps: list[ast.stmt]) -> bool:
    """True for a model that is in a DataParallel where the optimizer is made; other wrappers there are refused.

    The wrapping statements of the function join `wraps`.
    """
    program, file, inside = making.program, making.file, False
    elsewhere = wrapped_elsewhere(program, file, slot, making.function)
    if elsewhere is not None:
        inside = making.stays_inside(*elsewhere)
        if not inside:
            raise Refused(*elsewhere, "the model is wrapped before the optimizer is created", _UNWRAPPED)
    wrapped = [statement(call) for call in file.scan.calls if wraps_model(program, file, call, slot)]
    wraps += [item for item in wrapped if enclosing_function(item) is making.function]
    for at, node in stores_of(program, slot):
        value = getattr(statement(node), "value", None)
        if at is file and statement(node) not in wraps and isinstance(value, ast.expr):
            if is_wrapper(program, file, value) and not making.stays_inside(file, value):
                raise Refused(file, node, "the model is wrapped where it is created", _UNWRAPPED)
            inside = inside or is_wrapper(program, file, value)
    return inside


def _block(file: File, setups: list[ast.stmt]) -> list[ast.stmt]:
    """The innermost block of a function that holds all statements."""
    block = block_of(setups[0])
    while any(lifted(item, block) is None for item in setups):
        above = parent(block[0])
        while not isinstance(above, (ast.stmt, ast.Module)):
            above = parent(above)
        if not isinstance(above, ast.stmt) or isinstance(above, (*FUNCTIONS, ast.ClassDef)):
            raise Refused(file, setups[0], "model and optimizer are created in different blocks", _TOGETHER)
        block = block_of(above)
    return block


def _check_optimizers(making: _Making, above: list[ast.stmt]) -> None:
    """Every optimizer is there for amp.initialize, be it None, whatever way the statements `above` it take."""
    program, file = making.program, making.file
    for origin in making.updates:
        mine = [node for node in making.stores if program.slot(file, node) == origin]
        none_ahead = len(stores_of(program, origin)) > len(mine)
        if not none_ahead and not any(binds(item, set(map(statement, mine))) for item in above):
            why = "the optimizer is created under a condition, and may not exist for amp.initialize"
            do = "create it in any case, or set it to None before the condition; then run transplt again"
            raise Refused(file, mine[0], why, do)


def _perhaps(making: _Making, above: list[ast.stmt]) -> frozenset[str]:
    """The models that are None in some way through the statements `above` amp.initialize."""
    program, file, found = making.program, making.file, set[str]()
    for slot, base in making.models.items():
        mine = making.made(slot)
        none_ahead = len(stores_of(program, slot)) > len(_made(program, slot))
        if none_ahead and mine and not any(binds(item, set(map(statement, mine))) for item in above):
            if making.level != "O1":
                why = "the model is created under a condition, and is None otherwise, which amp.initialize refuses"
                raise Refused(file, mine[0], why, "create it in any case")
            found.add(text_of(file, base))
    return frozenset(found)


def _check_once(making: _Making, after: ast.stmt) -> None:
    if loops_around(after):
        why = "the optimizer is created in a loop, but amp.initialize is called once"
        raise Refused(making.file, making.stores[0], why, _ONCE)
    function = making.function
    above = parent(function) if function is not None and function.name == "__init__" else None
    callee = above if isinstance(above, ast.ClassDef) else function
    sites = making.program.call_sites.get(callee, []) if callee is not None else []
    if len(sites) > 1 or any(loops_around(call) for _, call in sites):
        why = "the optimizer is created several times, but amp.initialize is called once"
        raise Refused(making.file, making.stores[0], why, _ONCE)


def _with_wrappers(place: Initialization, making: _Making, block: list[ast.stmt], last: int) -> Initialization:
    """The place with what becomes of the wrappers above it; it is behind the statement `last` of a block."""
    program, file = making.program, making.file
    moved: dict[ast.stmt, None] = {}
    deferred: list[tuple[ast.stmt, ast.stmt]] = []
    inside: set[str] = set()
    for item in place.wraps:
        index = lifted(item, block)
        if index is None or index > last:
            continue
        if movable(program, file, block, index, last):
            moved[block[index]] = None
        elif deferrable(program, file, item, block[index : last + 1]):
            deferred.append((block[index], item))
        elif making.stays_inside(file, item):
            slots = {program.slot(file, node) for node in getattr(item, "targets", ())}
            inside |= {text_of(file, base) for slot, base in making.models.items() if slot in slots}
        else:
            raise Refused(file, item, "the model is wrapped before the optimizer is created", _UNWRAPPED)
    return replace(place, moved=(*moved,), deferred=(*deferred,), inside=place.inside | inside)


def _spread(program: Program, held: dict[Variable, Variable], origin: Variable) -> None:
    """All variables that hold a model, by the values that they are given."""
    changed = True
    while changed:
        changed = False
        for target, values in program.values.items():
            if target in held:
                continue
            for value in values:
                node: ast.expr = value.node
                while True:
                    match node:
                        case ast.Call(func=ast.Attribute(value=inner, attr=method)) if method in MOVES:
                            node = inner  # model.to(device)
                        case ast.Call(func=func, args=[inner, *_]) if value.file.names.qualified(func) in WRAPPERS:
                            node = inner  # DistributedDataParallel(model)
                        case _:
                            break
                if value.index is not None or not isinstance(node, (ast.Name, ast.Attribute)):
                    continue
                if held.get(program.slot(value.file, node) or ("", "", "")) == origin:
                    held[target] = origin
                    changed = True
