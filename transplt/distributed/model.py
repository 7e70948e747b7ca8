"""Which variables hold a model that trains, where it is wrapped, and where the bare model is meant."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from transplt.distributed.bench import Bench
from transplt.distributed.program import File, Program, Slot, Value, enclosing_function, text_of
from transplt.distributed.training import Training, block_of, lifted
from transplt.scan import FUNCTIONS, chain, parent, statement

_SETUPS = frozenset(
    "to cuda npu half float double bfloat16 load_state_dict apply compile requires_grad_ type share_memory".split()
)
DATA_PARALLEL = frozenset(
    {"torch.nn.DataParallel", "torch.nn.parallel.DataParallel", "torch.nn.parallel.data_parallel.DataParallel"}
)
_OPTIMIZERS = ("torch.optim.", "apex.optimizers.", "timm.optim.", "transformers.", "bitsandbytes.optim.", "adabelief")
_OPTIMIZER_WORDS = (
    "adam",
    "sgd",
    "rmsprop",
    "adagrad",
    "lamb",
    "lars",
    "adadelta",
    "optim",
    "lion",
    "radam",
    "adafactor",
)


@dataclass(slots=True)
class Models:
    """The models that train: the variable of each origin, and all variables that hold the wrapped model."""

    program: Program
    training: Training
    origins: dict[Slot, None] = field(default_factory=dict)
    wrapped: dict[Slot, Slot] = field(default_factory=dict)  # -> its origin

    def origin(self, file: File, node: ast.AST) -> Slot | None:
        """The origin of the wrapped model that an expression is, None for any other."""
        slot = self.program.slot(file, node)
        return self.wrapped.get(slot) if slot else None


def find_models(program: Program, training: Training, targets: tuple[str, ...]) -> Models:
    """Models whose parameters an optimizer gets (`targets` restricts them by their spelling)."""
    models = Models(program, training)
    for file in program.files:
        for node in sorted(file.scan.attributes.get("parameters", ()), key=lambda item: (item.lineno, item.col_offset)):
            if not _optimized(program, file, node):
                continue
            base = _base(node.value)
            slot = program.slot(file, base) if base is not None else None
            if slot is None or (isinstance(base, ast.Name) and base.id in ("self", "cls")):
                continue
            for origin in _origins(program, slot, set()):
                if not targets or _named(origin, targets):
                    models.origins.setdefault(origin)
    for origin in models.origins:
        _spread(models, origin)
    return models


def _named(origin: Slot, targets: tuple[str, ...]) -> bool:
    spelled = f"self.{origin[2]}" if origin[0] == "self" else origin[2]
    return spelled in targets or origin[2] in targets


def _base(node: ast.expr) -> ast.expr | None:
    """`model` of `model.fc`, `self.model` of `self.model.encoder`."""
    while isinstance(node, ast.Attribute):
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            return node
        node = node.value
    return node if isinstance(node, ast.Name) else None


def _optimized(program: Program, file: File, node: ast.Attribute) -> bool:
    """True when `X.parameters` goes to an optimizer: directly, or through one variable."""
    for above in chain(node):
        if isinstance(above, ast.Call) and is_optimizer(file, above):
            return True
        if isinstance(above, ast.stmt):
            break
    stored = statement(node)
    if not isinstance(stored, ast.Assign) or len(stored.targets) != 1:
        return False
    slot = program.slot(file, stored.targets[0])
    if slot is None:
        return False
    for other in program.files:
        for call in other.scan.calls:
            if is_optimizer(other, call):
                for argument in [*call.args, *(keyword.value for keyword in call.keywords)]:
                    if any(isinstance(n, ast.Name) and program.slot(other, n) == slot for n in ast.walk(argument)):
                        return True
    return False


def is_optimizer(file: File, call: ast.Call) -> bool:
    """True for a call that makes an optimizer, by its module or its name."""
    name = file.names.qualified(call.func) or ""
    if name.startswith(_OPTIMIZERS):
        return "lr_scheduler" not in name and "get_" not in name
    last = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return any(word in last.lower() for word in _OPTIMIZER_WORDS) and last not in ("zero_grad", "step")


def _origins(program: Program, slot: Slot, seen: set[Slot]) -> list[Slot]:
    """The variables in which the model is made, of which `slot` is handed the model."""
    if slot in seen:
        return []
    seen.add(slot)
    given: list[Slot] = []
    for value in program.values.get(slot, ()):
        if value.index is None and isinstance(value.node, (ast.Name, ast.Attribute)):
            above = program.slot(value.file, value.node)
            if above is None or above == slot:
                return [slot]
            given.append(above)
        elif slot[0] != "self" and _is_parameter(program, slot):
            return [slot]  # made where it is handed over: it has no other name
    if not given:
        return [slot]
    # `model = model` in the end of a branch leads nowhere else; a value that is made here makes this the origin
    if any(not isinstance(value.node, (ast.Name, ast.Attribute)) for value in program.values.get(slot, ())):
        return [slot]
    return [origin for item in given for origin in _origins(program, item, seen)]


def _is_parameter(program: Program, slot: Slot) -> bool:
    file = next((file for file in program.files if file.path == slot[0]), None)
    if file is None:
        return False
    from transplt.distributed.program import scope_key

    for scope in file.scan.scopes.values():
        if scope_key(scope) == slot[1]:
            return any(binding.kind == "param" for binding in scope.bindings.get(slot[2], ()))
    return False


def _spread(models: Models, origin: Slot) -> None:
    """All variables to which the wrapped model gets."""
    program, training = models.program, models.training
    models.wrapped[origin] = origin
    pending = [origin]
    while pending:
        slot = pending.pop()
        for target, values in program.values.items():
            if target in models.wrapped:
                continue
            for value in values:
                if value.index is None and _is_slot(program, value, slot) and _keeps_wrapper(models, training, value):
                    models.wrapped[target] = origin
                    pending.append(target)
                    break
                if _returned(program, value, slot):
                    models.wrapped[target] = origin
                    pending.append(target)
                    break


def _is_slot(program: Program, value: Value, slot: Slot) -> bool:
    return isinstance(value.node, (ast.Name, ast.Attribute)) and program.slot(value.file, value.node) == slot


def _keeps_wrapper(models: Models, training: Training, value: Value) -> bool:
    above = parent(value.node)
    if isinstance(above, ast.keyword):
        above = parent(above)
    return not isinstance(above, ast.Call) or takes_wrapper(models, value.file, above, value.node)


def takes_wrapper(models: Models, file: File, call: ast.Call, node: ast.expr) -> bool:
    """True for a call that gets the wrapped model `node`: one that trains with it, or runs it on all ranks."""
    if models.training.trains(file, call):
        return True
    callee = models.program.callee(file, call)
    if callee is not None:
        return _runs_model(
            models, callee, next((n for n, v in models.program.arguments(call, callee) if v is node), "")
        )
    name = file.names.qualified(call.func) or ""
    last = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name.startswith(("torch.", "torchvision.", "copy.")) or last in (
        "print",
        "isinstance",
        "str",
        "len",
        "deepcopy",
    ):
        return False
    return models.training.in_region(file, call) and not any(
        word in last.lower() for word in ("save", "eval", "valid", "test", "log", "ema", "update")
    )


def _runs_model(models: Models, callee: ast.AST, name: str) -> bool:
    """True for a function that calls the model it is given, and is given no other: buffers stay alike on all ranks."""
    program, function = models.program, models.program.constructor(callee)
    if function is None or not name:
        return False
    file, slot = program.owner[function], program.parameter_slot(function, name)
    if not any(isinstance(call.func, ast.Name) and program.slot(file, call.func) == slot for call in file.scan.calls):
        return False
    return all(program.slot(value.file, value.node) in models.wrapped for value in program.values.get(slot, ()))


def _returned(program: Program, value: Value, slot: Slot) -> bool:
    """True when a value is what a function of the program returns, and that is the variable `slot`."""
    if not isinstance(value.node, ast.Call):
        return False
    callee = program.callee(value.file, value.node)
    if not isinstance(callee, FUNCTIONS):
        return False
    for result in program.returns(callee):
        item: ast.expr | None = result
        if value.index is not None:
            whole = isinstance(result, ast.Tuple) and value.index < len(result.elts)
            item = result.elts[value.index] if whole and isinstance(result, ast.Tuple) else None
        if item is not None and program.slot(program.owner[callee], item) == slot:
            return True
    return False


# --- where it is wrapped ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Wrap:
    """Where a model is wrapped: after a statement, under the name it has there. `parallel` are DataParallel calls."""

    file: File
    origin: Slot
    after: ast.stmt
    name: str
    parallel: tuple[ast.Call, ...]


def find_wrap(models: Models, origin: Slot) -> Wrap | None:
    """The place after the last statement that sets a model up, in the block in which it is made."""
    program = models.program
    stores = stores_of(program, origin)
    if not stores:
        return None
    file = stores[0][0]
    stores = [item for item in stores if item[0] is file]
    function = enclosing_function(stores[0][1])
    stores = [item for item in stores if enclosing_function(item[1]) is function]
    setups = [statement(node) for _, node in stores]
    bases = [
        node for names in (file.scan.names.values(), file.scan.attributes.values()) for group in names for node in group
    ]
    for node in bases:
        if program.slot(file, node) == origin and enclosing_function(node) is function and _sets_up(file, node):
            setups.append(statement(node))
    block = block_of(statement(stores[0][1]))
    while any(lifted(statement(node), block) is None for _, node in stores):
        above = parent(block[0])
        if not isinstance(above, ast.stmt) or isinstance(above, (*FUNCTIONS, ast.ClassDef)):
            return None
        block = block_of(above)
    trains = _first_training(models, file, block)
    places = [index for node in setups if (index := lifted(node, block)) is not None and index < trains]
    if not places:
        return None
    parallel = tuple(
        call
        for call in file.scan.calls
        if file.names.qualified(call.func) in DATA_PARALLEL and _of_origin(program, file, call, origin)
    )
    return Wrap(file, origin, block[max(places)], text_of(file, _expression(stores[0][1])), parallel)


def stores_of(program: Program, origin: Slot) -> list[tuple[File, ast.expr]]:
    """Where the variable is assigned, by place."""
    found: list[tuple[File, ast.expr]] = []
    for file in program.files:
        for scope in file.scan.scopes.values():
            for binding in scope.bindings.get(origin[2], ()):
                node = binding.node
                if binding.kind == "assign" and isinstance(node, ast.Name) and program.slot(file, node) == origin:
                    found.append((file, node))
        found += [(file, node) for node in file.scan.stores if program.slot(file, node) == origin]
    kept = [item for item in found if isinstance(statement(item[1]), (ast.Assign, ast.AnnAssign))]
    return sorted(kept, key=lambda item: (item[0].path, item[1].lineno, item[1].col_offset))


def _expression(node: ast.expr) -> ast.expr:
    return node


def _sets_up(file: File, node: ast.expr) -> bool:
    """True for `model.cuda()` and the like, and where the model goes to apex's amp.initialize."""
    above = parent(node)
    if isinstance(above, ast.Attribute) and above.value is node:
        call = parent(above)
        return above.attr in _SETUPS and isinstance(call, ast.Call) and call.func is above
    call = parent(above) if isinstance(above, (ast.keyword, ast.List)) else above
    return isinstance(call, ast.Call) and (file.names.qualified(call.func) or "").endswith("amp.initialize")


def _first_training(models: Models, file: File, block: list[ast.stmt]) -> int:
    """Index of the first statement of a block that trains; its length when none does."""
    loops = {id(loop) for at, loop in models.training.regions if at is file}
    backward = {id(call) for at, call in models.training.backwards if at is file}
    for index, item in enumerate(block):
        if isinstance(item, (*FUNCTIONS, ast.ClassDef)):
            continue
        for node in ast.walk(item):
            if id(node) in loops or id(node) in backward:
                return index
            made = isinstance(node, ast.Call) and isinstance(models.program.callee(file, node), ast.ClassDef)
            if isinstance(node, ast.Call) and not made and models.training.trains(file, node):
                return index
    return len(block)


def early_uses(models: Models, wrap: Wrap) -> list[ast.Call]:
    """Calls above the place where a model is wrapped, of functions that use it: what they see is not wrapped yet."""
    program, found = models.program, []
    for file, call in ((wrap.file, call) for call in wrap.file.scan.calls):
        callee = program.callee(file, call)
        same = enclosing_function(call) is enclosing_function(wrap.after)
        if not isinstance(callee, FUNCTIONS) or not same or not before_wrap(file, call, wrap):
            continue
        owner = program.owner[callee]
        uses = [node for node in ast.walk(callee) if isinstance(node, (ast.Name, ast.Attribute))]
        if any(program.slot(owner, node) == wrap.origin and isinstance(node.ctx, ast.Load) for node in uses):
            found.append(call)
    return found


def _of_origin(program: Program, file: File, call: ast.Call, origin: Slot) -> bool:
    stored = statement(call)
    targets = stored.targets if isinstance(stored, ast.Assign) else []
    return any(program.slot(file, target) == origin for target in targets)


def buffers_apart(models: Models, origin: Slot, file: File) -> bool:
    """True when a model with buffers that training writes runs more than once in a step, as discriminators do."""
    if not any(b"BatchNorm" in other.source.utf8 for other in models.program.files):
        return False
    for at, loop, _ in models.training.loops:
        runs = 0
        for node in ast.walk(loop):
            if isinstance(node, ast.Call) and models.origin(at, node.func) == origin:
                runs += 1
        if runs > 1:
            return True
    return False


def write_wrap(bench: Bench, models: Models, wrap: Wrap) -> None:
    """`model = DistributedDataParallel(model, ...)` behind the statement."""
    if not bench.layout.fits(wrap.after):
        bench.left(
            wrap.after,
            f"{wrap.name} has to be wrapped in DistributedDataParallel here, and this line holds several statements",
            "write the statements on lines of their own and run transplt again",
        )
        return
    apart = ", broadcast_buffers=False" if buffers_apart(models, wrap.origin, wrap.file) else ""
    torch = bench.torch
    text = f"{wrap.name} = {bench.parallel}({wrap.name}, device_ids=[{torch}.npu.current_device()]{apart})"
    bench.layout.after(wrap.after, [text], "NPU336", f"{wrap.name} in DistributedDataParallel")


def before_wrap(file: File, node: ast.AST, wrap: Wrap) -> bool:
    """True for code that runs before the model is wrapped: above that line in the same function."""
    if file is not wrap.file or enclosing_function(node) is not enclosing_function(wrap.after):
        return False
    return getattr(node, "lineno", 0) <= (wrap.after.end_lineno or wrap.after.lineno)
