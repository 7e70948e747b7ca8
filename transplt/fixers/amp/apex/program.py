"""What `--amp apex` needs to know of a program: where amp.initialize goes, and which optimizers a backward pass is for.

`read_apex(program)` gives an `Apex`, or a `Problem` for a program that gets nothing. It is all or nothing: what
amp.initialize has changed trains only with scaled losses. Nothing is written here.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace

from transplt.fixers.amp.apex.checks import Pass, check_file, check_lines, check_weights, early, loose
from transplt.fixers.amp.apex.float import InFloat32, read_float32
from transplt.fixers.amp.apex.forward import float_of_its_own
from transplt.fixers.amp.apex.place import Initialization, Problem, Refused, find_place, origin_of
from transplt.fixers.amp.reading import NO_CARD, makes_models
from transplt.fixers.amp.steps import no_step
from transplt.fixers.amp.unbound import said_of, unbound_for
from transplt.program.cards import on_card
from transplt.program.late_parameters import made_late, thawed_late
from transplt.program.layers import left_out_at_times
from transplt.program.loops import loops_around
from transplt.program.optimized_models import ParametersGiven, parameters_given
from transplt.program.optimizers import OptimizerStep, is_closure, optimizer_stepped
from transplt.program.program import File, Function, Program, Variable, enclosing_function, text_of
from transplt.program.reached_functions import reached_functions
from transplt.program.steps import backward_passes, is_backward_pass
from transplt.syntax.nodes import argument_at, begins, class_of_method, ends
from transplt.syntax.scan import FUNCTIONS, parent, statement

CLIPS = frozenset(
    f"torch.nn.utils.{module}{name}"
    for module in ("", "clip_grad.")
    for name in ("clip_grad_norm_", "clip_grad_value_", "clip_grad_norm")
)


@dataclass(frozen=True, slots=True)
class Clip:
    """Gradient clipping: the parameters it is given, and the optimizer that updates them."""

    file: File
    call: ast.Call
    parameters: ast.expr
    optimizer: str


@dataclass(slots=True)
class Apex:
    """One program under apex: `losses` is the number of them given to amp.initialize, 1 for one scale in all.

    `decided` is the reason for the level, empty where it was asked for; `only`: the other one cannot be right.
    """

    program: Program
    level: str
    place: Initialization
    passes: list[Pass] = field(default_factory=list)
    clips: list[Clip] = field(default_factory=list)
    losses: int = 1
    floats: InFloat32 = field(default_factory=InFloat32)
    decided: str = ""
    only: bool = False
    loose: str = ""  # why gradients cannot be kept in one tensor (combine_grad)


def read_apex(program: Program, level: str) -> Apex | Problem | None:
    """How a program gets apex; None for one that reaches no training."""
    reached = reached_functions(program)
    main = program.files[0]
    passes = [
        (file, call)
        for file in program.files
        for call in backward_passes(file.scan)
        if (function := enclosing_function(call)) in reached or (function is None and file is main)
    ]
    if not passes:
        return None
    try:
        return _read(program, passes, level)
    except Refused as refused:
        return replace(refused.problem, trains=tuple(file.path for file, _ in passes))


def _read(program: Program, passes: list[tuple[File, ast.Call]], level: str) -> Apex:
    if makes_models(program) and not on_card(program):
        raise Refused(*passes[0], *NO_CARD)
    for file, call in passes:
        _check_pass(program, file, call)
    owners = [_owners(program, file, call) for file, call in passes]
    every: dict[Variable, tuple[File, ast.Call]] = {}
    for (file, call), steps in zip(passes, owners, strict=True):
        for step in steps:
            origin = origin_of(program, file, step, level)
            if origin is None:
                text = text_of(file, step)
                raise Refused(file, call, f"the place where {text} is created was not found", _BY_HAND)
            every.setdefault(origin, (file, call))
    place = find_place(program, every, level)
    apex = Apex(program, level, place)
    several = len(every) > 1
    if several and (shared := _shared(program, place, list(every))) is not None:
        if level == "O2":
            raise Refused(
                place.file, shared, "two optimizers train the same parameters, and with O2 each has its own weights",
                "let one optimizer train them",
            )  # fmt: skip
        apex.loose = f"{place.file.path}:{shared.lineno} trains parameters of another optimizer"
    for index, ((file, call), steps) in enumerate(zip(passes, owners, strict=True)):
        texts = tuple(dict.fromkeys(text_of(file, step) for step in steps))
        apex.passes.append(Pass(file, call, texts, index if several else None))
    apex.losses = len(passes) if several else 1
    if level == "O2" and (found := float_of_its_own(program, place.held)) is not None:
        at, made = found
        raise Refused(
            at, made, "the forward pass creates a float32 tensor here, and O2 combines it with float16 weights",
            "give it the dtype of the input (dtype=x.dtype)",
        )  # fmt: skip
    _check_written(program, passes, place)
    _check_late(program, place)
    apex.floats = read_float32(program, level)
    for file in program.files:
        check_file(program, file, place, level)
        if level == "O2":
            check_weights(program, file, place, apex.passes)
        apex.loose = apex.loose or loose(program, file, place)
    if not apex.loose and (left_out := left_out_at_times(program)) is not None:
        apex.loose = f"{left_out[0].path}:{left_out[1].lineno} has a layer that some steps skip"
    _clips(apex, passes, level)
    return apex


def _check_written(program: Program, passes: list[tuple[File, ast.Call]], place: Initialization) -> None:
    """Something can be written where it has to stand, and no file reads an amp of its own there, without an import."""
    for file, call in passes:
        check_lines(file, statement(call))
    for node in (place.after, *place.moved):
        check_lines(place.file, node)
    written = [*passes, (place.file, place.after)]
    for each in program.files:
        scopes = [enclosing_function(node) or each.scan.tree for at, node in written if at is each]
        if (read := unbound_for(each, scopes)) is not None:
            raise Refused(each, read, *said_of(read))


def _check_late(program: Program, place: Initialization) -> None:
    """The model that trains is the one that amp.initialize is given."""
    for at, freed in thawed_late(program):
        if not early(program, at, freed, place):
            why = "parameters are unfrozen here during training, and apex only unscales those of its start"
            do = "unfreeze them before amp.initialize, or start a separate training with them"
            raise Refused(at, freed, why, do)
    for at, part in made_late(program):
        if not early(program, at, part, place):
            why = "a part of the model is created here during training, and apex only knows those of its start"
            do = "create it before amp.initialize, or start a separate training with it"
            raise Refused(at, part, why, do)


def _shared(program: Program, place: Initialization, optimizers: list[Variable]) -> ast.Call | None:
    """The call that makes an optimizer of parameters that another one has, too."""
    made: list[tuple[Variable, ast.Call, ParametersGiven]] = []
    for origin in optimizers:
        for value in program.values.get(origin, ()):
            if isinstance(value.node, ast.Call):
                given = parameters_given(program, value.file, value.node)
                if any(slot != origin and given.shares(other) for slot, _, other in made):
                    return value.node
                made.append((origin, value.node, given))
    return None


_STEP = (
    "call step() of an optimizer that has its own variable in the function of the backward pass, and run transplt "
    "again; or write apex by hand"
)
_BY_HAND = (
    "write it by hand: model, optimizer = amp.initialize(model, optimizer, ...) after the optimizer, and `with "
    "amp.scale_loss(loss, optimizer) as scaled_loss: scaled_loss.backward()`"
)


def _check_pass(program: Program, file: File, call: ast.Call) -> None:
    assert isinstance(call.func, ast.Attribute)
    given = {keyword.arg for keyword in call.keywords}
    full = file.names.qualified(call.func) or ""
    if full.startswith("torch."):
        raise Refused(file, call, f"{full} takes several losses at once", _BY_HAND)
    if "create_graph" in given or None in given:
        raise Refused(
            file, call, "this backward pass may keep a graph for second derivatives (create_graph)",
            "divide the gradients by the loss scale before they are used, or keep this training in float32",
        )  # fmt: skip
    if not isinstance(parent(call), ast.Expr):
        raise Refused(file, call, "the backward pass is not a separate statement", "write it as `loss.backward()`")
    if call.args and isinstance(call.func.value, ast.Name) and "loss" in text_of(file, call.args[0]).lower():
        name = text_of(file, call.func.value)
        raise Refused(file, call, f"{name} runs the backward pass for the script", "set its precision there")
    function = enclosing_function(call)
    if function is not None and is_closure(program, file, function):
        raise Refused(file, call, *_CLOSURE)


_CLOSURE = (
    "the optimizer calls the backward pass itself (a closure, as LBFGS needs it), and amp does not support closures",
    "keep this training in float32, or write the steps without a closure",
)


def _owners(program: Program, file: File, call: ast.Call) -> list[ast.expr]:
    """The optimizers that step with the gradients of a backward pass: all steps up to the next backward pass."""
    function = enclosing_function(call)
    steps = _steps(program, file, function)
    if not steps:
        cls = class_of_method(function)
        others = [
            step
            for method in (cls.body if cls is not None else ())
            if isinstance(method, FUNCTIONS)
            for step in _steps(program, file, method)
        ]
        texts = {text_of(file, step.optimizer) for step in others}
        if all(text.startswith("self.") for text in texts):
            if len(texts) == 1:
                return [others[0].optimizer]
            if (found := _by_callers(program, file, function, call)) is not None:
                return found
        raise Refused(file, call, no_step(file, call), _STEP)
    for step in steps:
        if step.stmt is not statement(step.call):
            raise Refused(file, step.call, "the optimizers are in a list", "give each its own variable and step")
    if len({text_of(file, step.optimizer) for step in steps}) == 1:
        return [steps[0].optimizer]
    found = _next_steps(call, _passes(file, function), steps)
    if not found:
        raise Refused(file, call, "no optimizer step follows this backward pass", _STEP)
    return found


def _by_callers(program: Program, file: File, function: Function | None, call: ast.Call) -> list[ast.expr] | None:
    """The optimizers that step behind a method with one backward pass, in another method of its class."""
    sites = program.call_sites.get(function, []) if function is not None else []
    if _passes(file, function) != [call] or len(sites) != 1 or sites[0][0] is not file:
        return None
    caller = enclosing_function(sites[0][1])
    if caller is None or class_of_method(caller) is not class_of_method(function) or loops_around(sites[0][1]):
        return None
    holding = {enclosing_function(item) for item in backward_passes(file.scan)}
    marks = [
        at
        for at in file.scan.calls
        if enclosing_function(at) is caller and (is_backward_pass(at) or program.callee(file, at) in holding)
    ]
    return _next_steps(sites[0][1], marks, _steps(program, file, caller)) or None


def _passes(file: File, function: Function | None) -> list[ast.Call]:
    return [call for call in backward_passes(file.scan) if enclosing_function(call) is function]


def _next_steps(call: ast.Call, marks: list[ast.Call], steps: list[OptimizerStep]) -> list[ast.expr]:
    """The optimizers that step behind a backward pass, of several that follow each other: up to the next pass."""
    events: list[tuple[tuple[int, int], OptimizerStep | None]] = sorted(
        [*((ends(mark), None) for mark in marks), *((ends(step.call), step) for step in steps)],
        key=lambda item: item[0],
    )
    found: list[ast.expr] = []
    for place, event in events:
        if place <= ends(call) and event is None:
            found = []
        elif place > ends(call) and event is not None:
            found.append(event.optimizer)
        elif place > ends(call) and found:
            break
    return found


def _steps(program: Program, file: File, function: ast.AST | None) -> list[OptimizerStep]:
    found = []
    for call in file.scan.calls:
        step = optimizer_stepped(program, file, call)
        if step is None or enclosing_function(call) is not function:
            continue
        if call.args or call.keywords:
            raise Refused(file, call, *_CLOSURE)
        found.append(step)
    return sorted(found, key=lambda step: begins(step.call))


def _clips(apex: Apex, passes: list[tuple[File, ast.Call]], level: str) -> None:
    """Clipping takes the parameters that the optimizer updates."""
    program, place = apex.program, apex.place
    training = {(file.path, id(enclosing_function(call))) for file, call in passes}
    for file in program.files:
        for call in file.scan.calls:
            if (file.names.qualified(call.func) or "") not in CLIPS:
                continue
            given = argument_at(call, 0, "parameters")
            optimizer = _optimizer_of(program, file, given, call, place, level)
            if given is not None and optimizer and (file.path, id(enclosing_function(call))) in training:
                apex.clips.append(Clip(file, call, given, optimizer))
            elif level == "O2" and (late := _optimizer_of(program, file, given, call, place, level, behind=True)):
                raise Refused(
                    file, call, f"gradients are clipped here after the step of {late}, which has already used them",
                    "clip between the backward pass and the step",
                )  # fmt: skip
            elif level == "O2":
                raise Refused(
                    file, call, "the optimizer of the parameters that are clipped here was not found",
                    "clip those of amp.master_params(optimizer)",
                )  # fmt: skip


def _optimizer_of(
    program: Program,
    file: File,
    given: ast.expr | None,
    call: ast.Call,
    place: Initialization,
    level: str,
    *,
    behind: bool = False,
) -> str:
    """The spelling of the optimizer that updates exactly the parameters `model.parameters()`, and steps below the call.

    With `behind` that of one that has taken its step above it.
    """
    match given:
        case ast.Call(func=ast.Attribute(value=ast.Attribute(value=base, attr="module"), attr="parameters")):
            pass
        case ast.Call(func=ast.Attribute(value=base, attr="parameters")):
            pass
        case _:
            return ""
    slot = program.slot(file, base)
    model = place.held.get(slot) if slot is not None else None
    owner = [origin for origin, models in place.updates.items() if model is not None and models == {model}]
    if len(owner) != 1 or (level == "O1" and not _trains_all(program, owner[0])):
        return ""  # with O1 gradients are float32 and unscaled, whoever holds them
    for step in _steps(program, file, enclosing_function(call)):
        if origin_of(program, file, step.optimizer, level) == owner[0] and (begins(step.call) < begins(call)) == behind:
            return text_of(file, step.optimizer)
    return ""


def _trains_all(program: Program, optimizer: Variable) -> bool:
    """True for `SGD(model.parameters(), ...)`: an optimizer that may have a part of them clips fewer gradients."""
    for value in program.values.get(optimizer, ()):
        match value.node:
            case ast.Constant() | ast.Call(args=[ast.Call(func=ast.Attribute(attr="parameters")), *_]):
                continue
        return False
    return True
