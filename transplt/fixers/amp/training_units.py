"""The training code of one file, for those who write mixed precision around it.

`find_units(work)` gives a `Unit` for each function, class or module level that holds backward passes:

- `backwards`: the calls `loss.backward()` with their loss; `steps`: the calls `optimizer.step()` with their optimizer;
- `regions`: neighbouring statements from the forward pass to the loss, which are to stand under autocast; one that
  ends in `criterion(model(x), y).backward()` has the backward pass in its last statement (`inline`);
- `reads`: statements before which gradients have to be unscaled (clipping, reading of `.grad`), with the optimizer;
- `penalties`: statements of a region that differentiate for a gradient penalty, in float32 (`penalties.py`);
- `parts`: what one scaler serves, with the places where it is made and updated (`optimizer_groups.py`);
- `problems`: why nothing may be written here; a unit with a problem gets nothing at all.

Nothing is written here. A problem with `scaling` speaks against scaled losses only: autocast alone may be written.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

from transplt.edits.work import Work
from transplt.fixers.amp.forward import forward_regions, is_compute, with_inline
from transplt.fixers.amp.host_loss import moved_to_host
from transplt.fixers.amp.optimizer_groups import Part, parts_of
from transplt.fixers.amp.own_precision import unserved
from transplt.fixers.amp.penalties import Penalty, parts, penalties
from transplt.fixers.amp.precision import calls_under, needs_digits
from transplt.fixers.amp.reading import in_functions, made_by_class, networks, own_nodes
from transplt.fixers.amp.scaler_place import find_home
from transplt.fixers.amp.steps import Read, crossing, exits, gradient_reads, last_steps, limiting_hook, no_step
from transplt.program.imports import imports_of
from transplt.program.optimizers import OptimizerStep, is_closure, optimizer_stepped
from transplt.program.program import File, Program, enclosing_function, text_of
from transplt.program.programs import programs_of
from transplt.program.steps import backward_passes
from transplt.program.variable_values import values_of
from transplt.syntax.nodes import begins, by_place, class_of_method, inner_nodes, of_kind, variable
from transplt.syntax.scan import FUNCTIONS, parent


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a unit gets nothing: `why` and what to `do`, at a node."""

    node: ast.expr | ast.stmt
    why: str
    do: str
    scaling: bool = False


@dataclass(frozen=True, slots=True)
class Backward:
    """A backward pass: `call` is `loss.backward(...)`. `inline`: the loss is worked out in that statement itself."""

    call: ast.Call
    loss: ast.expr
    inline: bool


@dataclass(slots=True)
class Unit:
    """One piece of training code; `scopes` are its functions, or the module."""

    program: Program
    file: File
    scopes: list[ast.AST]
    backwards: list[Backward] = field(default_factory=list)
    steps: list[OptimizerStep] = field(default_factory=list)
    regions: list[list[ast.stmt]] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    penalties: list[Penalty] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def making(self) -> list[ast.stmt]:
        """The statements beside which its scalers are made."""
        homes = [part.home for part in self.parts if part.home is not None]
        return [item for home in homes for item in (*home.after, home.above) if item is not None]

    @property
    def first(self) -> ast.Call:
        """The first backward pass."""
        return by_place(item.call for item in self.backwards)[0]


#: What differentiates by itself, inside of a loss perhaps. `learn2learn` and `higher` do so in what they return.
_DERIVATIVES = (
    "torch.autograd.grad", "torch.autograd.functional.", "torch.func.grad", "torch.func.jac", "torch.func.hessian",
    "torch.func.vjp", "functorch.grad", "functorch.jac", "functorch.hessian", "learn2learn.algorithms.", "higher.",
)  # fmt: skip
_EXAMPLES = "https://pytorch.org/docs/stable/notes/amp_examples.html"


def find_units(work: Work) -> list[Unit]:
    """The training code of the file on the bench, by place."""
    programs = programs_of(work.project)
    own = programs.own(work.file)
    return units_of(programs.program(imports_of(work.project).entry(own.path), own), own)


def units_of(program: Program, own: File) -> list[Unit]:
    """The training code of one file of a program, by place."""
    found: dict[int, list[ast.Call]] = {}
    scopes: dict[int, ast.AST] = {}
    for call in backward_passes(own.scan):
        scope = _unit_scope(program, own, call)
        scopes[id(scope)] = scope
        found.setdefault(id(scope), []).append(call)
    units = [_unit(program, own, scopes[key], calls) for key, calls in found.items()]
    for unit in units:
        if not unit.problems and (reason := program.once(unserved)) is not None:
            _problem(unit, unit.first, *reason)
    return units


def _works_out(node: ast.AST) -> bool:
    """True for a call of a function or an object, not for a method of a tensor or a list of losses that is summed."""
    if not isinstance(node, ast.Call):
        return False
    func = node.func
    while isinstance(func, ast.Attribute):
        if isinstance(func.value, ast.Call):
            return False  # the inner call is looked at by itself
        func = func.value
    if isinstance(node.func, ast.Name):
        return node.func.id not in ("sum", "min", "max")
    name = variable(node.func)
    return not ("loss" in name.lower() and isinstance(node.func, ast.Attribute) and name != f"self.{node.func.attr}")


def _unit_scope(program: Program, file: File, call: ast.Call) -> ast.AST:
    """The class of a method when the class holds the optimizers that take the steps, else the function or module."""
    function = enclosing_function(call)
    cls = class_of_method(function)
    if cls is not None:
        steps = [
            step.optimizer
            for method in cls.body
            if isinstance(method, FUNCTIONS)
            for at in inner_nodes(method, ast.Call)
            if (step := optimizer_stepped(program, file, at)) is not None
        ]
        own = [optimizer for optimizer in steps if variable(optimizer).startswith("self.")]
        if own and len(own) == len(steps):
            return cls
    return function if function is not None else file.scan.tree


def _unit(program: Program, file: File, scope: ast.AST, calls: list[ast.Call]) -> Unit:
    scopes: list[ast.AST] = [scope]
    if isinstance(scope, ast.ClassDef):
        scopes = [at for at in ast.walk(scope) if isinstance(at, FUNCTIONS)]
    unit = Unit(program, file, scopes)
    known = networks(file)
    for call in calls:
        assert isinstance(call.func, ast.Attribute)
        loss = call.func.value
        unit.backwards.append(Backward(call, loss, any(map(_works_out, ast.walk(loss)))))
        _check_backward(unit, call)
    steps = (optimizer_stepped(program, file, at) for at in of_kind(ast.Call, _nodes(unit)))
    unit.steps = sorted((step for step in steps if step is not None), key=lambda step: begins(step.call))
    _check_steps(unit)
    barriers = {id(item.call) for item in unit.backwards} | {id(step.call) for step in unit.steps}
    every = [item.loss for item in unit.backwards]
    regions, missing = forward_regions(program, file, every, barriers, known)
    missing = [loss for loss in missing if not is_compute(program, file, loss, known)]
    unit.regions = with_inline(regions, [item.loss for item in unit.backwards if item.inline], barriers)
    for loss in missing:
        _problem(
            unit, loss, "the forward pass of this loss was not found",
            'put `with torch.autocast("npu", dtype=...):` around the forward pass and the loss',
        )  # fmt: skip
    if any(not problem.scaling for problem in unit.problems):
        return unit
    unit.parts = parts_of(program, file, scope, [item.call for item in unit.backwards], unit.steps)
    unit.penalties = penalties(program, file, unit.regions, known)
    _check_scaling(unit)
    _check_gradients(unit)
    if _fits_half_precision(unit, known):
        _find_reads(unit)
        for part in unit.parts:
            _complete(unit, part)
    return unit


def _fits_half_precision(unit: Unit, known: set[str]) -> bool:
    """False where a forward pass needs more digits than half precision has; losses on the host are a problem too."""
    losses = [item.loss for item in unit.backwards]
    for region in unit.regions:
        if (moved := moved_to_host(unit.program, unit.file, region, losses, known)) is not None:
            _problem(
                unit, moved, "the loss is computed on the CPU, but the scaler needs losses on the card",
                "compute the loss on the card, or use --amp-dtype bfloat16, which needs no scaler",
                scaling=True,
            )  # fmt: skip
        if (digits := needs_digits(unit.program, unit.file, region)) is not None:
            _problem(unit, digits[0] or unit.first, digits[1], digits[2])
            return False
    return True


def _find_reads(unit: Unit) -> None:
    """Where gradients are read outside of the forward passes, each in front of a step."""
    inside = {id(at) for region in unit.regions for item in region for at in ast.walk(item)}
    for one in unit.scopes:
        own = [step for step in unit.steps if (enclosing_function(step.call) or unit.file.scan.tree) is one]
        reads, lost = gradient_reads(unit.program, unit.file, one, own, [item.call for item in unit.backwards])
        unit.reads += [read for read in reads if id(read.node) not in inside]
        for node in lost:
            assert isinstance(node, (ast.expr, ast.stmt))
            _problem(
                unit, node, "gradients are clipped or read, but no optimizer step follows in the same block",
                "call scaler.unscale_(optimizer) once before the gradients are clipped, and only for the steps; divide "
                "gradients that no optimizer has by scaler.get_scale()",
                scaling=True,
            )  # fmt: skip


def _complete(unit: Unit, part: Part) -> None:
    """Where the scaler of a part is made and updated."""
    part.updates, late = last_steps(part.steps, part.backwards)
    if late is not None:
        _between(unit, late)
    texts = part.texts
    reads = [read.before for read in unit.reads if text_of(unit.file, read.optimizer) in texts]
    for scope in unit.scopes:
        found, unsure = exits(scope, [*(step.stmt for step in part.steps), *reads], part.updates)
        part.exits += found
        if unsure is not None:
            _problem(
                unit, unsure, "an iteration may end here between its first and last step",
                "call scaler.update() before it if scaler.step or scaler.unscale_ has run",
                scaling=True,
            )  # fmt: skip
    if part.steps and not unit.problems:
        home = find_home(unit.program, unit.file, [step.optimizer for step in part.steps], part.backwards)
        if isinstance(home, str):
            _problem(
                unit, unit.first, home,
                'create `scaler = torch.amp.GradScaler("npu")` next to the optimizer (before torch 2.3: '
                'torch.npu.amp.GradScaler()), and use it here: scaler.scale(loss).backward(), scaler.step(optimizer), '
                'scaler.update()',
                scaling=True,
            )  # fmt: skip
        else:
            part.home = home


def _nodes(unit: Unit) -> Iterable[ast.AST]:
    for scope in unit.scopes:
        if isinstance(scope, ast.Module):
            for item in scope.body:
                if not isinstance(item, (*FUNCTIONS, ast.ClassDef)):
                    yield from own_nodes(item)
        else:
            yield from own_nodes(scope)


def _problem(unit: Unit, node: ast.expr | ast.stmt, why: str, do: str, *, scaling: bool = False) -> None:
    unit.problems.append(Problem(node, why, do, scaling))


def _check_backward(unit: Unit, call: ast.Call) -> None:
    assert isinstance(call.func, ast.Attribute)
    full = unit.file.names.qualified(call.func) or ""
    given = {keyword.arg for keyword in call.keywords}
    if full.startswith("torch."):
        _problem(unit, call, f"{full} takes several losses at once", "scale each: scaler.scale(loss).backward()")
    elif "create_graph" in given:
        _problem(
            unit, call, "this backward pass keeps a graph for second derivatives (create_graph)",
            f"unscale the gradients before they are used, see the gradient penalty in {_EXAMPLES}",
            scaling=True,
        )  # fmt: skip
    elif not isinstance(parent(call), ast.Expr):
        _problem(unit, call, "the backward pass is not a separate statement", "write it as `loss.backward()`")
    elif (
        isinstance(call.func.value, ast.Name)
        and isinstance(first := next(iter(call.args), None), (ast.Name, ast.Attribute))
        and "loss" in text_of(unit.file, first).lower()
    ):
        _problem(
            unit, call, f"{text_of(unit.file, call.func.value)} runs the backward pass for the script",
            "set its precision where it is configured",
        )  # fmt: skip


def _check_steps(unit: Unit) -> None:
    file, program = unit.file, unit.program
    closure = any(isinstance(scope, FUNCTIONS) and is_closure(program, file, scope) for scope in unit.scopes)
    if closure or any(step.call.args or step.call.keywords for step in unit.steps):
        _problem(
            unit, unit.first, "the optimizer calls this backward pass itself (a closure, as for LBFGS)",
            "GradScaler does not work with closures: keep this training in float32, or use --amp-dtype bfloat16 and "
            "write autocast around the forward pass of the closure",
        )  # fmt: skip
        return
    for step in unit.steps:
        cls = made_by_class(program, file, step.optimizer)
        text = text_of(file, step.optimizer)
        if not isinstance(parent(step.call), ast.Expr):
            _problem(
                unit, step.call, f"the result of {text}.step() is used", "write the step as a statement", scaling=True
            )
        elif cls is not None:
            _problem(
                unit, step.call, f"{text} is an object of {cls.name}, which is not a torch.optim.Optimizer",
                f"write the steps by hand: scaler.step() needs the optimizer inside {text}",
                scaling=True,
            )  # fmt: skip
        elif any(
            isinstance(value, ast.Call) and (at.names.qualified(value.func) or "").endswith("LBFGS")
            for at, value in values_of(program, file, step.optimizer)
        ):
            _problem(
                unit, step.call, "GradScaler does not work with LBFGS", "keep this training in float32", scaling=True
            )


def _check_scaling(unit: Unit) -> None:
    """What speaks against one scaler for the unit."""
    if not unit.steps:
        _problem(
            unit, unit.first, no_step(unit.file, unit.first),
            "scale the loss, and let the same scaler take the step: scaler.scale(loss).backward(), "
            "scaler.step(optimizer), scaler.update()",
            scaling=True,
        )  # fmt: skip
        return
    scopes = {id(enclosing_function(step.call)) for step in unit.steps}
    if len(scopes) > 1 and any(id(enclosing_function(item.call)) not in scopes for item in unit.backwards):
        _problem(
            unit, unit.first, "backward passes and steps are in several methods",
            "call scaler.update() once at the end of an iteration",
            scaling=True,
        )  # fmt: skip
    hooks = ((file, call) for file in unit.program.files if (call := limiting_hook(file)) is not None)
    for file, call in hooks:
        there = "" if file is unit.file else f" ({file.path})"
        _problem(
            unit, call if file is unit.file else unit.first, f"a hook limits gradients while they are scaled{there}",
            "clip after the backward pass, with torch.nn.utils.clip_grad_value_, and run transplt again",
            scaling=True,
        )  # fmt: skip
    for part in unit.parts:
        step = crossing(part.steps, part.backwards)
        if step is not None:
            _between(unit, step.call)


def _between(unit: Unit, node: ast.expr | ast.stmt) -> None:
    why = "there are other steps between this step and its backward pass"
    do = "use one scaler for each optimizer, and update each after its own step"
    _problem(unit, node, why, do, scaling=True)


def _check_gradients(unit: Unit) -> None:
    """Derivatives that enter a loss (a gradient penalty), and sparse products."""
    if unit.file.scan.attributes.get("to_sparse") or any(
        (unit.file.names.qualified(call.func) or "").startswith("torch.sparse") for call in unit.file.scan.calls
    ):
        why = "half-precision products of sparse tensors may not work on NPUs"
        _problem(unit, unit.first, why, "keep this training in float32")
    every = [(unit.file, node) for node in of_kind(ast.Call, _nodes(unit))]
    apart = [penalty.stmt for penalty in unit.penalties]
    nodes = [node for region in unit.regions for node in parts(region) if node not in apart]
    under = calls_under(unit.program, unit.file, nodes)
    for file, call in [*every, *under]:
        name = file.names.qualified(call.func) or ""
        if name.startswith(_DERIVATIVES):
            _problem(
                unit,
                call if file is unit.file else unit.first,
                f"{name} returns gradients without the loss scale" + ("" if file is unit.file else f" ({file.path})"),
                "scale the value that it differentiates, and divide the result by scaler.get_scale(), as for the "
                f"gradient penalty in {_EXAMPLES}",
                scaling=True,
            )
            return


def calls_in_regions(unit: Unit) -> list[tuple[File, ast.Call]]:
    """The calls that run under autocast: those of the regions, and of the functions that these call."""
    found: list[tuple[File, ast.Call]] = []
    for region in unit.regions:
        for item in region:
            found += in_functions(unit.program, unit.file, item)
    return found
