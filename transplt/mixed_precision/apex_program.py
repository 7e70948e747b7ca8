"""What `--amp apex` needs to know of a program: where amp.initialize goes, and which optimizers a backward pass is for.

`read_apex(program)` gives an `Apex`, or a `Problem` for a program that gets nothing. It is all or nothing: what
amp.initialize has changed trains only with scaled losses. Nothing is written here.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from transplt.distributed.program import File, Function, Program, Slot, enclosing_function, reached_functions, text_of
from transplt.indenting import owns_its_lines
from transplt.mixed_precision.apex_place import Place, find_place, origin_of
from transplt.mixed_precision.reading import class_around, is_optimizer_object, optimizer_stepped
from transplt.mixed_precision.steps import Step, step_of
from transplt.scan import FUNCTIONS, chain, parent, statement

CLIPS = frozenset(
    f"torch.nn.utils.{module}{name}"
    for module in ("", "clip_grad.")
    for name in ("clip_grad_norm_", "clip_grad_value_", "clip_grad_norm")
)
_FLOAT_ONLY = frozenset(
    {"torch.nn.BCELoss", "torch.nn.modules.loss.BCELoss", "torch.nn.functional.binary_cross_entropy"}
)
#: Methods of modules that run no network.
_HOUSEKEEPING = frozenset(
    "to cuda npu cpu train eval parameters named_parameters modules named_modules children named_children state_dict"
    " load_state_dict zero_grad requires_grad_ apply register_buffer buffers named_buffers share_memory compile"
    " double float register_forward_hook register_backward_hook no_sync".split()
)
#: Methods of a parameter that is looked at.
_OF_TENSORS = frozenset(
    "copy_ fill_ normal_ uniform_ zero_ size dim numel detach clone float mean std sum abs norm min max item tolist"
    " numpy storage data_ptr contiguous view reshape t".split()
)


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a program gets nothing: `why` and what to `do`, at a node of a file."""

    file: File
    node: ast.expr | ast.stmt
    why: str
    do: str


@dataclass(frozen=True, slots=True)
class Pass:
    """A backward pass with the spellings of its optimizers; `loss_id` where each loss has a scale of its own."""

    file: File
    call: ast.Call
    optimizers: tuple[str, ...]
    loss_id: int | None = None

    @property
    def owner(self) -> str:
        """How the optimizers are given to amp.scale_loss."""
        return self.optimizers[0] if len(self.optimizers) == 1 else f"[{', '.join(self.optimizers)}]"


@dataclass(frozen=True, slots=True)
class Clip:
    """Gradient clipping: the parameters it is given, and the optimizer that updates them."""

    file: File
    call: ast.Call
    parameters: ast.expr
    optimizer: str


@dataclass(slots=True)
class Apex:
    """One program under apex: `losses` is what amp.initialize is told of them, 1 for one scale in all."""

    program: Program
    place: Place
    passes: list[Pass] = field(default_factory=list)
    clips: list[Clip] = field(default_factory=list)
    losses: int = 1


class _Refused(Exception):
    def __init__(self, file: File, node: ast.expr | ast.stmt, why: str, do: str) -> None:
        super().__init__(why)
        self.problem = Problem(file, node, why, do)


def backwards_of(program: Program, file: File) -> list[ast.Call]:
    """The calls `loss.backward(...)` of a file, by place."""
    found = []
    for call in file.scan.calls:
        func = call.func
        if not isinstance(func, ast.Attribute) or func.attr != "backward":
            continue
        function = enclosing_function(call)
        own = function is not None and function.name in ("backward", "jvp", "vjp") and class_around(function)
        inherited = isinstance(func.value, ast.Call) and getattr(func.value.func, "id", "") == "super"
        if not own and not inherited and getattr(func.value, "id", "") != "ctx":
            found.append(call)
    return sorted(found, key=lambda call: (call.lineno, call.col_offset))


def read_apex(program: Program, level: str) -> Apex | Problem | None:
    """How a program gets apex; None for one that reaches no training."""
    reached = reached_functions(program)
    main = program.files[0]
    passes = [
        (file, call)
        for file in program.files
        for call in backwards_of(program, file)
        if (function := enclosing_function(call)) in reached or (function is None and file is main)
    ]
    if not passes:
        return None
    try:
        return _read(program, passes, level)
    except _Refused as refused:
        return refused.problem


def _read(program: Program, passes: list[tuple[File, ast.Call]], level: str) -> Apex:
    for file, call in passes:
        _check_pass(program, file, call)
    owners = [_owners(program, file, call) for file, call in passes]
    every: dict[Slot, tuple[File, ast.expr]] = {}
    for (file, call), steps in zip(passes, owners, strict=True):
        for step in steps:
            origin = origin_of(program, file, step)
            if origin is None:
                text = text_of(file, step)
                raise _Refused(file, call, f"where {text} is made cannot be seen", _BY_HAND)
            every.setdefault(origin, (file, step))
    place = find_place(program, list(every))
    if isinstance(place, tuple):
        at, node, why, do = place
        raise _Refused(at or passes[0][0], node or passes[0][1], why, do or _BY_HAND)
    apex = Apex(program, place)
    several = len(every) > 1
    for index, ((file, call), steps) in enumerate(zip(passes, owners, strict=True)):
        texts = tuple(dict.fromkeys(text_of(file, step) for step in steps))
        apex.passes.append(Pass(file, call, texts, index if several else None))
    apex.losses = len(passes) if several else 1
    for file, call in passes:
        _check_lines(file, statement(call))
    for node in (place.after, *place.moved):
        _check_lines(place.file, node)
    for file in program.files:
        _check_file(program, file, place, level)
        if level == "O2":
            _check_weights(apex, file)
    _clips(apex, passes, level)
    return apex


_BY_HAND = (
    "write it by hand: model, optimizer = amp.initialize(model, optimizer, ...) behind the optimizer, and "
    "`with amp.scale_loss(loss, optimizer) as scaled_loss: scaled_loss.backward()`"
)


def _check_pass(program: Program, file: File, call: ast.Call) -> None:
    assert isinstance(call.func, ast.Attribute)
    given = {keyword.arg for keyword in call.keywords}
    full = file.names.qualified(call.func) or ""
    if full.startswith("torch."):
        raise _Refused(file, call, f"{full} takes several losses at once", _BY_HAND)
    if "create_graph" in given or None in given:
        raise _Refused(
            file, call, "this backward pass may keep a graph for second derivatives (create_graph)",
            "divide the gradients by the loss scale before they are used, or leave this training in float32",
        )  # fmt: skip
    if not isinstance(parent(call), ast.Expr):
        raise _Refused(file, call, "the backward pass is no statement of its own", "write it as `loss.backward()`")
    if call.args and isinstance(call.func.value, ast.Name) and "loss" in text_of(file, call.args[0]).lower():
        name = text_of(file, call.func.value)
        raise _Refused(file, call, f"{name} runs the backward pass for the script", "set its precision there")
    function = enclosing_function(call)
    if function is not None and _is_closure(program, file, function):
        raise _Refused(file, call, *_CLOSURE)


_CLOSURE = (
    "the optimizer calls the backward pass itself (a closure, as LBFGS needs it), and amp takes no closures",
    "leave this training in float32, or write the steps without a closure",
)


def _is_closure(program: Program, file: File, function: Function) -> bool:
    for use in file.scan.names.get(function.name, ()):
        call = parent(use)
        func = call.func if isinstance(call, ast.Call) and use in call.args else None
        if isinstance(func, ast.Attribute) and func.attr == "step":
            return is_optimizer_object(program, file, func.value)
    return False


def _owners(program: Program, file: File, call: ast.Call) -> list[ast.expr]:
    """The optimizers that step with the gradients of a backward pass: all steps up to the next backward pass."""
    function = enclosing_function(call)
    steps = _steps(program, file, function)
    if not steps:
        cls = class_around(function)
        others = [
            step
            for method in (cls.body if cls is not None else ())
            if isinstance(method, FUNCTIONS)
            for step in _steps(program, file, method)
        ]
        texts = {text_of(file, step.optimizer) for step in others}
        if len(texts) == 1 and texts.pop().startswith("self."):
            return [others[0].optimizer]
        raise _Refused(file, call, "no step of an optimizer follows in the same function", _BY_HAND)
    for step in steps:
        if step.stmt is not statement(step.call):
            raise _Refused(file, step.call, "the optimizers are in a list", _BY_HAND)
    if len({text_of(file, step.optimizer) for step in steps}) == 1:
        return [steps[0].optimizer]
    marks = [(item.lineno, None) for item in backwards_of(program, file) if enclosing_function(item) is function]
    events: list[tuple[int, Step | None]] = sorted(
        [*marks, *((step.call.lineno, step) for step in steps)], key=lambda item: item[0]
    )
    found: list[ast.expr] = []
    for line, event in events:
        if line <= call.lineno and event is None:
            found = []
        elif line > call.lineno and event is not None:
            found.append(event.optimizer)
        elif line > call.lineno and found:
            break
    if not found:
        raise _Refused(file, call, "no step of an optimizer follows this backward pass", _BY_HAND)
    return found


def _steps(program: Program, file: File, function: ast.AST | None) -> list[Step]:
    found = []
    for call in file.scan.calls:
        optimizer = optimizer_stepped(program, file, call)
        if optimizer is None or enclosing_function(call) is not function:
            continue
        if call.args or call.keywords:
            raise _Refused(file, call, *_CLOSURE)
        found.append(step_of(call, optimizer))
    return sorted(found, key=lambda step: (step.call.lineno, step.call.col_offset))


def _check_lines(file: File, node: ast.stmt) -> None:
    if not owns_its_lines(file.source, node):
        do = "write the statements on lines of their own and run transplt again"
        raise _Refused(file, node, "this line holds several statements", do)


def _check_file(program: Program, file: File, place: Place, level: str) -> None:
    """What apex does not go with, anywhere in the program."""
    for call in sorted(file.scan.calls, key=lambda node: (node.lineno, node.col_offset)):
        full = file.names.qualified(call.func) or ""
        if full == "torch.autograd.grad":
            raise _Refused(
                file, call, "torch.autograd.grad gives gradients that know nothing of the loss scale",
                "leave this training in float32, or scale by hand what it differentiates",
            )  # fmt: skip
        if level == "O1" and full in _FLOAT_ONLY:
            raise _Refused(
                file, call, "binary_cross_entropy may not run under opt_level O1",
                "return logits and take BCEWithLogitsLoss, or run transplt with --opt-level O2",
            )  # fmt: skip
        if level == "O2":
            _check_call(program, file, call, place)
    for node in file.scan.stores:
        if isinstance(node, ast.Attribute) and node.attr == "grad":
            raise _Refused(
                file, node, "this sets gradients one by one, and combine_grad keeps them in one tensor",
                "clear them with optimizer.zero_grad()",
            )  # fmt: skip
    if level == "O2":
        for node in sorted(file.scan.attributes.get("grad", ()), key=lambda item: (item.lineno, item.col_offset)):
            above = parent(node)
            if isinstance(node.ctx, ast.Load) and not isinstance(above, ast.Compare) and not _zeroes(node):
                raise _Refused(
                    file, node, "this reads gradients of the model, which stay scaled and in float16 with O2",
                    "read those of amp.master_params(optimizer), or run transplt with --opt-level O1",
                )  # fmt: skip


def _zeroes(node: ast.Attribute) -> bool:
    above = parent(node)
    while isinstance(above, ast.Attribute):
        if above.attr in ("zero_", "detach_"):
            return True
        above = parent(above)
    return False


def _check_weights(apex: Apex, file: File) -> None:
    """O2 copies float32 weights over those of the model behind every step: what changes these by hand is lost."""
    place = apex.place
    for node in sorted(file.scan.attributes.get("data", ()), key=lambda item: (item.lineno, item.col_offset)):
        above = parent(node)
        if not isinstance(above, ast.Attribute) or not above.attr.endswith("_") or above.attr == "zero_":
            continue
        function = enclosing_function(node)
        early = file is place.file and node.lineno <= place.after.lineno
        if not any(one.file is file and enclosing_function(one.call) is function for one in apex.passes) or early:
            continue
        names = {at.id for at in ast.walk(node) if isinstance(at, ast.Name)}
        loops = (at for at in chain(node) if isinstance(at, ast.For))
        loop = next((at for at in loops if getattr(at.target, "id", "") in names), None)
        bases = [at for at in ast.walk(loop.iter) if isinstance(at, (ast.Name, ast.Attribute))] if loop else []
        if any(apex.program.slot(file, at) in place.held for at in bases):
            raise _Refused(
                file, node, "this changes weights by hand, and with O2 those in float32 are copied over them",
                "change amp.master_params(optimizer) too, or run transplt with --opt-level O1",
            )  # fmt: skip


def _check_call(program: Program, file: File, call: ast.Call, place: Place) -> None:
    """O2 casts what goes into the model itself: its methods and parts get float32 and hold float16."""
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr in _HOUSEKEEPING:
        return
    base: ast.expr = func.value
    inside = False
    if any(isinstance(node, ast.Attribute) and node.attr in ("grad", "data") for node in ast.walk(func)):
        return
    while isinstance(base, ast.Attribute) and program.slot(file, base) not in place.held:
        inside, base = True, base.value
    if program.slot(file, base) not in place.held or file.names.qualified(func) is not None:
        return
    if inside and func.attr in _OF_TENSORS:
        return
    raise _Refused(
        file, call,
        f"{text_of(file, func)}(...) runs a part of the model, and O2 casts only what the model itself is given",
        "run transplt with --opt-level O1, or let forward() do it",
    )  # fmt: skip


def _clips(apex: Apex, passes: list[tuple[File, ast.Call]], level: str) -> None:
    """Clipping takes the parameters that the optimizer updates."""
    program, place = apex.program, apex.place
    training = {(file.path, id(enclosing_function(call))) for file, call in passes}
    for file in program.files:
        for call in file.scan.calls:
            if (file.names.qualified(call.func) or "") not in CLIPS:
                continue
            given = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "parameters"), None)
            optimizer = _optimizer_of(program, file, given, call, place)
            if given is not None and optimizer and (file.path, id(enclosing_function(call))) in training:
                apex.clips.append(Clip(file, call, given, optimizer))
            elif level == "O2":
                raise _Refused(
                    file, call, "which optimizer updates the parameters that are clipped here cannot be seen",
                    "clip those of amp.master_params(optimizer), or run transplt with --opt-level O1",
                )  # fmt: skip


def _optimizer_of(program: Program, file: File, given: ast.expr | None, call: ast.Call, place: Place) -> str:
    """The spelling of the optimizer that updates exactly the parameters `model.parameters()`."""
    if not isinstance(given, ast.Call) or not isinstance(given.func, ast.Attribute) or given.func.attr != "parameters":
        return ""
    base: ast.expr = given.func.value
    if isinstance(base, ast.Attribute) and base.attr == "module":
        base = base.value
    slot = program.slot(file, base)
    model = place.held.get(slot) if slot is not None else None
    owner = [origin for origin, models in place.updates.items() if model is not None and models == {model}]
    if len(owner) != 1:
        return ""
    for step in _steps(program, file, enclosing_function(call)):
        if origin_of(program, file, step.optimizer) == owner[0] and step.call.lineno > call.lineno:
            return text_of(file, step.optimizer)
    return ""
