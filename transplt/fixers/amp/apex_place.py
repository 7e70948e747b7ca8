"""Where amp.initialize goes: behind the optimizers, with their models on the card, in front of every wrapper."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from transplt.fixers.amp.apex_card import MOVES, moves, was_moved
from transplt.fixers.amp.apex_wraps import (
    WRAPPERS,
    deferrable,
    is_data_parallel,
    is_wrapper,
    movable,
    wrapped_elsewhere,
    wraps_model,
)
from transplt.program.loops import lifted, loops_around
from transplt.program.models import is_optimizer
from transplt.program.optimized import added, counted
from transplt.program.optimizers import binds
from transplt.program.program import (
    File,
    Function,
    Program,
    Slot,
    enclosing_function,
    stores_of,
    text_of,
)
from transplt.program.training import find_training
from transplt.program.values import named, origins, parameter_of
from transplt.syntax.asks import begins, block_of
from transplt.syntax.scan import FUNCTIONS, parent, statement

Trouble = tuple[File | None, "ast.expr | ast.stmt | None", str, str]


@dataclass(slots=True)
class Initialization:
    """Where amp.initialize goes: behind `after`, with the spellings of models and optimizers there.

    `held` maps every variable that holds one of the models to its first one; `updates` says which models an optimizer
    updates. `moved` are wrapping statements that stand above `after` and have to move behind it. Those
    of `deferred` stand in a branch that does more, given with it, and keep the wrapper for later. `wraps` are all of
    them, and those behind `after`. With O1, which changes nothing of a model, `inside` are models that are in a
    DataParallel by then, and `perhaps` those that may be None.
    """

    file: File
    after: ast.stmt
    models: list[str] = field(default_factory=list)
    optimizers: list[str] = field(default_factory=list)
    held: dict[Slot, Slot] = field(default_factory=dict)
    updates: dict[Slot, set[Slot]] = field(default_factory=dict)
    moved: list[ast.stmt] = field(default_factory=list)
    deferred: list[tuple[ast.stmt, ast.stmt]] = field(default_factory=list)
    wraps: list[ast.stmt] = field(default_factory=list)
    inside: list[str] = field(default_factory=list)
    perhaps: list[str] = field(default_factory=list)

    @property
    def alone(self) -> bool:
        """True when amp.initialize is given something else than the variables of the models."""
        return bool(self.inside or self.perhaps)


def origin_of(program: Program, file: File, node: ast.expr, level: str) -> Slot | None:
    """The variable in which what an expression holds was made, through parameters and other names; None if unsure.

    With O1, which leaves models as they are, also through what functions return.
    """
    slot = _origin(program, program.slot(file, node))
    seen = set[Slot]()
    while level == "O1" and slot is not None and slot not in seen:
        seen.add(slot)
        inner = _returned(program, slot)
        if inner is None:
            break
        slot = _origin(program, inner)
    return slot


def _origin(program: Program, given: Slot | None) -> Slot | None:
    found = origins(program, given)
    slot = found[0] if len(found) == 1 else None
    if slot is None or parameter_of(program, slot) is not None:
        return None
    values = [value.node for value in program.values.get(slot, ()) if not isinstance(value.node, ast.Constant)]
    return slot if any(named(value) is None for value in values) else None


def _returned(program: Program, slot: Slot) -> Slot | None:
    """The variable of a function that a variable is given from what it returns: `model, optimizer = build(args)`."""
    values = program.values.get(slot, ())
    if len(values) != 1 or not isinstance(values[0].node, ast.Call):
        return None
    callee = program.callee(values[0].file, values[0].node)
    if not isinstance(callee, FUNCTIONS):
        return None
    owner, index, found = program.owner[callee], values[0].index, set[Slot | None]()
    for result in program.returns(callee):
        items = result.elts if isinstance(result, ast.Tuple) else None
        item = items[index] if items and index is not None and index < len(items) else result
        named_so = isinstance(item, (ast.Name, ast.Attribute)) and (items is None) == (index is None)
        found.add(program.slot(owner, item) if named_so else None)
    return found.pop() if len(found) == 1 else None


def find_place(program: Program, optimizers: list[Slot], level: str) -> Initialization | Trouble:
    """The one place for some optimizers, or why there is none."""
    stores = [item for origin in optimizers for item in _made(program, origin)]
    if not stores or {origin for origin in optimizers if not _made(program, origin)}:
        return None, None, "where the optimizer is made cannot be seen", _MADE
    file, first = stores[0]
    function = enclosing_function(first)
    if any(at is not file or enclosing_function(node) is not function for at, node in stores):
        return file, first, "the optimizers are made in several functions, and amp.initialize is called once", _TOGETHER
    place = Initialization(file, statement(first))
    bases: dict[Slot, ast.expr] = {}
    for origin in optimizers:
        made = [node for _, node in _made(program, origin)]
        place.optimizers.append(text_of(file, made[0]))
        for node in made:
            found = _models(program, file, statement(node), origin)
            if found is None:
                return file, node, "which model this optimizer trains cannot be seen", _TRAINED
            for base in found:
                slot = program.slot(file, base)
                if slot is None or (isinstance(base, ast.Name) and base.id == "self"):
                    return file, node, "the optimizer is made inside of the model", _TOGETHER
                bases.setdefault(slot, base)
                place.updates.setdefault(origin, set()).add(slot)
    if not bases:
        return file, first, "which model this optimizer trains cannot be seen", _TRAINED
    place.models = [text_of(file, base) for base in bases.values()]
    for slot in bases:
        place.held[slot] = slot
        _spread(program, place, slot)
    return _settle(program, place, stores, bases, function, level)


def _made(program: Program, slot: Slot) -> list[tuple[File, ast.expr]]:
    """Where a variable is given a model or an optimizer: not by `optimizer = None` ahead of a branch that makes it."""
    return [(file, node) for file, node in stores_of(program, slot) if not isinstance(_stored(node), ast.Constant)]


def _stored(node: ast.expr) -> ast.expr | None:
    """What a name is given by its statement: `None` for the second one of `model, other = Net(), None`."""
    stmt, above = statement(node), parent(node)
    value = getattr(stmt, "value", None)
    if isinstance(above, ast.Tuple) and isinstance(value, ast.Tuple) and len(above.elts) == len(value.elts):
        value = value.elts[above.elts.index(node)]
    return value if isinstance(value, ast.expr) else None


def _settle(
    program: Program,
    place: Initialization,
    stores: list[tuple[File, ast.expr]],
    bases: dict[Slot, ast.expr],
    function: Function | None,
    level: str,
) -> Initialization | Trouble:
    """Find the last statement that sets up models and optimizers, and look at what stands around it."""
    file = place.file
    setups = [statement(node) for _, node in stores]
    wraps: list[ast.stmt] = []
    for slot, base in bases.items():
        text = text_of(file, base)
        wrapped = [statement(call) for call in file.scan.calls if wraps_model(program, file, call, slot)]
        elsewhere = wrapped_elsewhere(program, file, slot, function)
        if elsewhere is not None and level == "O1" and is_data_parallel(program, *elsewhere):
            place.inside.append(text)
        elif elsewhere is not None:
            return *elsewhere, "the model is wrapped before the optimizer is made", _UNWRAPPED
        wraps += [item for item in wrapped if enclosing_function(item) is function]
        for at, node in stores_of(program, slot):
            stored = statement(node)
            value = getattr(stored, "value", None)
            if at is not file or stored in wraps or not isinstance(value, ast.expr):
                continue
            if is_wrapper(program, file, value):
                if level == "O1" and is_data_parallel(program, file, value):
                    place.inside.append(text)
                    continue
                return file, node, "the model is wrapped where it is made", _UNWRAPPED
        moved = moves(program, file, slot, function)
        setups += moved
        setups += [
            statement(node)
            for at, node in _made(program, slot)
            if at is file and enclosing_function(node) is function and statement(node) not in wraps
        ]
        if not moved and not was_moved(program, slot, set()):
            why = f"nothing in sight puts {text} on the NPU, where amp.initialize needs it"
            return file, base, why, f"move it there before the optimizer is made: {text}.to(device)"
    block = block_of(setups[0])
    while any(lifted(item, block) is None for item in setups):
        above = parent(block[0])
        while not isinstance(above, (ast.stmt, ast.Module)):
            above = parent(above)
        if not isinstance(above, ast.stmt) or isinstance(above, (*FUNCTIONS, ast.ClassDef)):
            return file, setups[0], "model and optimizer are set up in different blocks", _TOGETHER
        block = block_of(above)
    trains = _first_training(program, file, block)
    places = [index for item in setups if (index := lifted(item, block)) is not None and index < trains]
    made = [lifted(statement(node), block) for _, node in stores]
    if any(index is None or index >= trains for index in made):
        return file, stores[0][1], "the optimizer is made where the training has begun", _TOGETHER
    last = max(places)
    place.after = block[last]
    for origin in place.updates:
        mine = [node for at, node in stores if program.slot(at, node) == origin]
        none_ahead = len(stores_of(program, origin)) > len(mine)
        if not none_ahead and not any(binds(item, {statement(node) for node in mine}) for item in block[: last + 1]):
            return file, mine[0], "the optimizer is made under a condition, and may not be there for amp.initialize", (
                "make it in any case, or make it None above the condition; then run transplt again"
            )
    for slot, base in bases.items():
        mine = [node for at, node in _made(program, slot) if at is file and enclosing_function(node) is function]
        none_ahead = len(stores_of(program, slot)) > len(_made(program, slot))
        if none_ahead and mine and not any(binds(item, set(map(statement, mine))) for item in block[: last + 1]):
            if level != "O1":
                why = "the model is made under a condition, and is None in the other case, which amp.initialize refuses"
                return file, mine[0], why, "make it in any case"
            place.perhaps.append(text_of(file, base))
    if loops_around(block[last]):
        return file, stores[0][1], "the optimizer is made in a loop, and amp.initialize is called once", _ONCE
    sites = program.call_sites.get(_called(function), []) if function is not None else []
    if len(sites) > 1 or any(loops_around(call) for _, call in sites):
        return file, stores[0][1], "the optimizer is made several times, and amp.initialize is called once", _ONCE
    place.wraps = sorted(wraps, key=begins)
    for item in place.wraps:
        index = lifted(item, block)
        if index is not None and index <= last:
            if movable(program, file, block, index, last):
                if block[index] not in place.moved:
                    place.moved.append(block[index])
            elif deferrable(program, file, item, block[index : last + 1]):
                place.deferred.append((block[index], item))
            elif level == "O1" and is_data_parallel(program, file, item):
                slots = {program.slot(file, node) for node in getattr(item, "targets", ())}
                place.inside += [text_of(file, base) for slot, base in bases.items() if slot in slots]
            else:
                why = "the model is wrapped before the optimizer is made"
                return file, item, why, _UNWRAPPED
    return place


_MADE = "keep it in a variable of its own, optimizer = torch.optim.X(model.parameters(), ...), and run transplt again"
_TOGETHER = (
    "make all models and then all optimizers in one function in front of the training, and run transplt again; or "
    "write one amp.initialize([models], [optimizers], ...) there by hand"
)
_ONCE = "start one process for each training, so that each calls amp.initialize once; or take --amp native"
_TRAINED = (
    "give it model.parameters() of a model in the same function, and run transplt again; leave the training of tensors "
    "that no model holds in float32"
)
_UNWRAPPED = "make the optimizer first, from the bare model, and wrap the model behind it; then run transplt again"


def _called(function: Function) -> ast.AST:
    above = parent(function)
    return above if function.name == "__init__" and isinstance(above, ast.ClassDef) else function


def _models(program: Program, file: File, stored: ast.stmt, origin: Slot) -> list[ast.expr] | None:
    """The models in the call that makes an optimizer; empty for `optimizer = None`, None when they cannot be seen."""
    value = getattr(stored, "value", None)
    if isinstance(value, ast.Constant):
        return []
    if isinstance(value, ast.IfExp):
        both = [value.body, value.orelse]
    elif isinstance(stored, ast.Assign) and isinstance(value, ast.Tuple) and isinstance(stored.targets[0], ast.Tuple):
        names = stored.targets[0].elts
        both = [item for name, item in zip(names, value.elts, strict=False) if program.slot(file, name) == origin]
    else:
        both = [value] if isinstance(value, ast.expr) else []
    found: list[ast.expr] = []
    for call in both:
        if not isinstance(call, ast.Call):
            return None
        bases = _bases(program, file, call, set())
        if not bases:
            return None
        found += bases
    return found


def _bases(program: Program, file: File, node: ast.expr, seen: set[int]) -> list[ast.expr]:
    """`model` of every `model.parameters()` in the arguments of a call, through variables and one helper."""
    found: dict[str, ast.expr] = {}
    if isinstance(node, ast.Call) and isinstance(callee := program.callee(file, node), FUNCTIONS):
        return _from_helper(program, file, node, callee)
    for at in ast.walk(node):
        if isinstance(at, ast.Attribute) and at.attr in ("parameters", "named_parameters"):
            base = _root(at.value)
            if isinstance(base, (ast.Name, ast.Attribute)):
                found.setdefault(text_of(file, base), base)
        elif isinstance(at, ast.Name) and isinstance(at.ctx, ast.Load) and id(at) not in seen:
            seen.add(id(at))
            slot = program.slot(file, at)
            if slot is None:
                continue
            given = [value for value in program.values.get(slot, ()) if value.file is file and _asks(value.node)]
            for value in (*given, *added(program, file, slot), *counted(program, file, slot)):
                if enclosing_function(value.node) is enclosing_function(node):
                    for base in _bases(program, file, value.node, seen):
                        found.setdefault(text_of(file, base), base)
    return list(found.values())


def _asks(node: ast.expr) -> bool:
    return any(isinstance(at, ast.Attribute) and at.attr in ("parameters", "named_parameters") for at in ast.walk(node))


def _root(node: ast.expr) -> ast.expr:
    """`model` of `model.encoder`, `self.model` of `self.model.encoder`."""
    while isinstance(node, ast.Attribute) and getattr(node.value, "id", "") != "self":
        node = node.value
    return node


def _from_helper(program: Program, file: File, call: ast.Call, callee: Function) -> list[ast.expr]:
    """The arguments of `make_optimizer(model, ...)` whose parameters the optimizers made there get.

    Of a method they may be what it is called of, and attributes of the object that both are methods of.
    """
    owner = program.owner[callee]
    given = dict(program.arguments(call, callee))
    found: dict[str, ast.expr] = {}
    for inner in owner.scan.calls:
        if enclosing_function(inner) is not callee or not is_optimizer(owner, inner):
            continue
        for base in _bases(program, owner, inner, set()):
            argument = given.get(base.id) if isinstance(base, ast.Name) else None
            of = call.func.value if isinstance(call.func, ast.Attribute) else None
            if of is not None and isinstance(base, ast.Name) and base.id == "self":
                argument = of
            elif isinstance(of, ast.Name) and of.id == "self" and isinstance(base, ast.Attribute) and owner is file:
                argument = base
            if argument is None or not isinstance(argument, (ast.Name, ast.Attribute)):
                return []
            found.setdefault(text_of(file, argument), argument)
    return list(found.values())


def _spread(program: Program, place: Initialization, origin: Slot) -> None:
    """All variables that hold a model, by the values that they are given."""
    changed = True
    while changed:
        changed = False
        for target, values in program.values.items():
            if target in place.held:
                continue
            for value in values:
                node: ast.expr = value.node
                while isinstance(node, ast.Call):  # model.to(device), DistributedDataParallel(model)
                    if isinstance(node.func, ast.Attribute) and node.func.attr in MOVES:
                        node = node.func.value
                    elif node.args and value.file.names.qualified(node.func) in WRAPPERS:
                        node = node.args[0]
                    else:
                        break
                if value.index is not None or not isinstance(node, (ast.Name, ast.Attribute)):
                    continue
                if place.held.get(program.slot(value.file, node) or ("", "", "")) == origin:
                    place.held[target] = origin
                    changed = True


def _first_training(program: Program, file: File, block: list[ast.stmt]) -> int:
    """Index of the first statement of a block that trains; its length when none does."""
    training = program.once(find_training)
    backward = {id(call) for at, call in training.backwards if at is file}
    for index, item in enumerate(block):
        if isinstance(item, (*FUNCTIONS, ast.ClassDef)):
            continue
        for node in ast.walk(item):
            if id(node) in backward:
                return index
            made = isinstance(node, ast.Call) and isinstance(program.callee(file, node), ast.ClassDef)
            if isinstance(node, ast.Call) and not made and training.trains(file, node):
                return index
    return len(block)
