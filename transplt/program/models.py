"""Which variables hold a model that trains, where it is wrapped, and where the bare model is meant."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from transplt.program.program import File, Program, ProgramValue, Variable, class_name
from transplt.program.training import Training
from transplt.program.variable_values import named, origins
from transplt.rules.torch_callables import names_of
from transplt.syntax.nodes import arguments_of, by_place, inner_nodes, last_name
from transplt.syntax.scan import FUNCTIONS, chain, parent, statement

#: What has classes of optimizers, and what is beside them there: it is given an optimizer, and reads it.
_OPTIMIZERS = (
    "torch.optim.", "torch_npu.optim.", "apex.optimizers.", "timm.optim.", "bitsandbytes.optim.", "torch_optimizer.",
    "pytorch_optimizer.", "galore_torch.", "adabelief",
)  # fmt: skip
READS_OPTIMIZER = (
    "torch.optim.lr_scheduler.", "torch.optim.swa_utils.", "transformers.get_", "transformers.optimization.get_",
)  # fmt: skip
#: Names of what makes an optimizer; `optimize_parameters` and `lambda` make none.
_NAMED = re.compile(
    r"adam|sgd|rmsprop|adagrad|adadelta|adafactor|"
    r"optim(?!iz[ei](?!r)|ise|al)|(?:^|_|fused)(?:lamb|lars|lion)(?:_|\d|$)",
    re.I,
)


@dataclass(slots=True)
class Models:
    """The models that train: the variable of each origin, and all variables that hold the wrapped model."""

    program: Program
    training: Training
    origins: dict[Variable, None] = field(default_factory=dict)
    wrapped: dict[Variable, Variable] = field(default_factory=dict)  # -> its origin

    def origin(self, file: File, node: ast.AST) -> Variable | None:
        """The origin of the wrapped model that an expression is, None for any other."""
        slot = self.program.slot(file, node)
        return self.wrapped.get(slot) if slot else None


def find_models(program: Program, training: Training, targets: tuple[str, ...]) -> Models:
    """Models whose parameters an optimizer gets (`targets` restricts them by their spelling)."""
    models = Models(program, training)
    for file in program.files:
        for node in by_place(file.scan.attributes.get("parameters", ())):
            if not _optimized(program, file, node):
                continue
            base = base_of(node.value)
            slot = program.slot(file, base) if base is not None else None
            if slot is None or (isinstance(base, ast.Name) and base.id in ("self", "cls")):
                continue
            for origin in made_in(program, slot):
                if not targets or is_named(spelled(origin), targets):
                    models.origins.setdefault(origin)
    for origin in models.origins or _called(models):
        if not targets or is_named(spelled(origin), targets):
            models.origins.setdefault(origin)
            _spread(models, origin)
    return models


def _called(models: Models) -> list[Variable]:
    """Models that a training loop calls, and whose parameters somebody asks for: when no optimizer is in sight."""
    program = models.program
    asked: dict[Variable, None] = {}
    for file in program.files:
        for node in by_place(file.scan.attributes.get("parameters", ())):
            slot = program.slot(file, node.value)
            for origin in made_in(program, slot) if slot is not None else ():
                asked.setdefault(origin)
    called: set[Variable] = set()
    for file, loop in models.training.regions:
        calls = [node.func for node in inner_nodes(loop, ast.Call)]
        slots = [slot for func in calls if (slot := program.slot(file, func)) is not None]
        called.update(origin for slot in slots for origin in made_in(program, slot))
    return [origin for origin in asked if origin in called]


def spelled(origin: Variable) -> str:
    """A variable as it is written: `model`, `self.model`."""
    return f"self.{origin[2]}" if origin[0] == "self" else origin[2]


def is_named(name: str, targets: tuple[str, ...]) -> bool:
    """True for a variable (`model`, `self.model`) that one of `targets` means."""
    return name in targets or name.rpartition(".")[2] in targets


def base_of(node: ast.expr) -> ast.expr | None:
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
                for argument in arguments_of(call):
                    nodes = [n for n in ast.walk(argument) if isinstance(n, (ast.Name, ast.Attribute))]
                    if any(program.slot(other, n) == slot for n in nodes):
                        return True
    return False


def is_optimizer(file: File, call: ast.Call) -> bool:
    """True for a call that makes an optimizer, by its class or its name, or by what is chosen for it."""
    return kind_of(file, call) is not None


def kind_of(file: File, call: ast.Call) -> str | None:
    """The full name of the class of which a call makes an optimizer; None for a call that makes none.

    `torch.optim` for one of its classes that is chosen where the program runs, empty where only a name says so.
    """
    if chosen := _classes(file, call.func, 3):
        of_torch = all(kind.startswith("torch.optim") for kind in chosen)
        return chosen.pop() if len(chosen) == 1 else "torch.optim" if of_torch else ""
    reads = (file.names.qualified(call.func) or "").startswith(READS_OPTIMIZER)
    return "" if not reads and _NAMED.search(last_name(call.func)) else None


def optimizer_class(full: str) -> str:
    """The full name of a class of optimizers, `torch.optim.Adam` for `torch.optim.adam.Adam`; empty for other names."""
    module, _, name = full.rpartition(".")
    if not full.startswith(_OPTIMIZERS) or full.startswith(READS_OPTIMIZER) or not name[:1].isupper():
        return ""
    own = module.removeprefix("torch.optim.").replace("_", "") == name.lower()
    return f"torch.optim.{name}" if own else full


def defines_optimizer(program: Program, cls: ast.ClassDef) -> bool:
    """True for a class of the program that is made from one of optimizers."""
    file, top = program.classes[program.root_class(class_name(program.owner[cls], cls))]
    named = (optimizer_class(file.names.qualified(base) or "") or _NAMED.search(last_name(base)) for base in top.bases)
    return any(named)


def _classes(file: File, node: ast.expr | None, depth: int) -> set[str]:
    """The classes of optimizers that `{"adam": optim.Adam}[name]`, `getattr(optim, name)` or a variable may be."""
    if node is None or depth == 0:
        return set()
    inside: list[ast.expr] = []
    match node:
        case ast.IfExp():
            inside = [node.body, node.orelse]
        case ast.Subscript(value=table) | ast.Call(func=ast.Attribute(value=table, attr="get")):
            tables = [table, *_values(file, table)]  # here or where a variable is given it
            inside = [value for each in tables if isinstance(each, ast.Dict) for value in each.values]
        case ast.Call(func=func, args=[first, *_]) if last_name(func) in ("getattr", "partial"):
            if file.names.qualified(first) == "torch.optim":
                return {"torch.optim"}
            inside = [first] if last_name(func) == "partial" else []
        case ast.Call():
            pass
        case _ if (known := file.names.qualified(node)) is not None:
            return {kind} if (kind := optimizer_class(known)) else set()
        case _:
            inside, depth = _values(file, node), depth - 1
    return {kind for each in inside for kind in _classes(file, each, depth)}


def _values(file: File, node: ast.expr) -> list[ast.expr]:
    """What a variable of the file is assigned."""
    found = file.names.lookup(node.id, file.scan.scope_of(node)) if isinstance(node, ast.Name) else None
    stored = (parent(binding.node) for binding in (found[1] if found else ()) if binding.kind == "assign")
    return [each.value for each in stored if isinstance(each, (ast.Assign, ast.AnnAssign)) and each.value is not None]


def made_in(program: Program, slot: Variable) -> tuple[Variable, ...]:
    """The variables in which a model is made: the last of them, where one is handed to another that is made anew."""
    every = origins(program, slot) or (slot,)
    handed = {above for each in every for above in origins(program, each) if above != each}
    return tuple(each for each in every if each not in handed)


def _spread(models: Models, origin: Variable) -> None:
    """All variables to which the wrapped model gets."""
    program = models.program
    models.wrapped[origin] = origin
    pending = [origin]
    while pending:
        slot = pending.pop()
        for target, values in program.values.items():
            if target in models.wrapped:
                continue
            for value in values:
                name = named(value.node) if value.index is None else None
                same = name is not None and program.slot(value.file, name) == slot
                above = parent(value.node)
                call = parent(above) if isinstance(above, ast.keyword) else above
                if same and isinstance(call, ast.Call):
                    same = takes_wrapper(models, value.file, call, value.node)
                if same or _returned(program, value, slot):
                    models.wrapped[target] = origin
                    pending.append(target)
                    break


def takes_wrapper(models: Models, file: File, call: ast.Call, node: ast.expr) -> bool:
    """True for a call that gets the wrapped model `node`: one that trains with it, or runs it on all ranks."""
    if models.training.trains(file, call):
        return True
    callee = models.program.callee(file, call)
    if callee is not None:
        given = models.program.arguments(call, callee)
        return _runs_model(models, callee, next((name for name, value in given if value is node), ""))
    name = file.names.qualified(call.func) or ""
    last = last_name(call.func)
    asks = names_of("builtins", "asks", "counts", "shows")
    if name.startswith(("torch.", "torchvision.", "copy.")) or last in asks or last == "deepcopy":
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


def _returned(program: Program, value: ProgramValue, slot: Variable) -> bool:
    """True when a value is what a function of the program returns, and that is the variable `slot`."""
    callee = program.callee(value.file, value.node) if isinstance(value.node, ast.Call) else None
    if not isinstance(callee, FUNCTIONS):
        return False
    for result in program.returns(callee):
        items = [result]
        if value.index is not None:
            items = result.elts[value.index : value.index + 1] if isinstance(result, ast.Tuple) else []
        if any(program.slot(program.owner[callee], item) == slot for item in items):
            return True
    return False
