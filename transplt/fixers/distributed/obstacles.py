"""Why no wrapper can exchange the gradients of a program: its ranks take the mean of them in front of each step."""

from __future__ import annotations

import ast

from transplt.fixers.distributed.program.divergence import Divergence
from transplt.fixers.distributed.program.unwrapped import (
    frozen_later,
    grown_later,
    handed_over,
    made_anew,
    moved_off,
    run_bare,
    state_elsewhere,
)
from transplt.program.imports import imports_of
from transplt.program.layers import dropped_output
from transplt.program.models import Models, is_optimizer, spelled
from transplt.program.optimizers import OptimizerStep, find_optimizers, optimizer_calls
from transplt.program.passes import Passes
from transplt.program.program import File, Program, Variable, enclosing_function, stores_of, text_of
from transplt.program.variable_values import values_of
from transplt.program.wrapper_places import Wrap, early_uses, may_have_buffers
from transplt.syntax.nodes import by_place, call_of


def obstacle(
    models: Models, wraps: dict[Variable, Wrap], passes: Passes, steps: list[OptimizerStep], ways: Divergence
) -> str:
    """Why no wrapper can exchange the gradients of this program; empty when it can."""
    why = _in_program(models, wraps, passes) or _unseen_optimizer(models, steps)
    # a wrapper that only some ranks would make, for which they wait for each other
    apart = (wrap.name for wrap in wraps.values() if not ways.is_uniform(wrap.file, wrap.after))
    if not why and (name := next(apart, "")):
        return f"some ranks may not reach the place where {name} must be wrapped"
    return why or _runs_apart(models, ways)


def runs_elsewhere(program: Program, file: File) -> bool:
    """True for a file that other scripts of the project import, too."""
    return any(path != program.files[0].path for path in imports_of(program.project).entries(file.path))


def _in_program(models: Models, wraps: dict[Variable, Wrap], passes: Passes) -> str:
    """What keeps a model of the program from its wrapper, or an optimizer from models in wrappers."""
    if not models.origins:
        return "the models that train were not found" if any(optimizer_calls(models.program)) else ""
    for origin in models.origins:
        if why := _keeps_from_wrapper(models, origin, wraps.get(origin)):
            return why
    for one in find_optimizers(models.program):
        if not one.given.complete:
            return f"the optimizer in line {one.call.lineno} trains only part of a model"
        apart = next((slot for slot in one.given.origins if slot not in models.origins), None)
        if apart is not None:
            return f"{apart[2]} has an optimizer"
    for file in models.program.files:
        for call in filter(None, map(call_of, file.scan.attributes.get("add_param_group", ()))):
            names = [each for each in ast.walk(call) if isinstance(each, (ast.Name, ast.Attribute))]
            if not any(models.origin(file, each) is not None for each in names):
                return f"the optimizer gets other parameters in line {call.lineno}"
    if not passes.complete:
        return "the program is too long to follow all of its forward and backward passes"
    return next(filter(None, (_in_passes(models, origin, passes) for origin in models.origins)), "")


def _keeps_from_wrapper(models: Models, origin: Variable, wrap: Wrap | None) -> str:
    name, program = spelled(origin), models.program
    if wrap is None:
        return f"the place where {name} must be wrapped was not found"
    if not wrap.in_place and len({enclosing_function(node) for _, node in stores_of(program, origin)}) > 1:
        return f"{name} is created in several places"
    if not wrap.in_place and (node := made_anew(models, wrap)) is not None:
        return f"{name} is created again in line {node.lineno}, and trained again"
    if (node := grown_later(models, wrap)) is not None:
        return f"a layer is put into {name} in line {node.lineno}, after it can be wrapped"
    if any(isinstance(value.node, ast.Constant) for value in program.values.get(origin, ())):
        return f"{name} may be None"
    if early_uses(models, wrap):
        return f"{name} is used by a function before it can be wrapped"
    if not wrap.in_place and (node := handed_over(models, wrap)) is not None:
        return f"{name} is passed on in line {node.lineno} before it can be wrapped"
    if (node := moved_off(models, wrap)) is not None:
        return f"{name} is moved to the CPU in line {node.lineno}, and back to its card"
    if (node := run_bare(models, wrap)) is not None:
        return f"{name} is run in line {node.lineno} by a function that other models are given to, too"
    if frozen_later(models, wrap):
        return f"parameters of {name} are frozen or unfrozen after it can be wrapped"
    if wrap.in_place and runs_elsewhere(program, wrap.file):
        return f"{wrap.file.path} is part of other scripts, whose checkpoints DataParallel names"
    return ""


def _in_passes(models: Models, origin: Variable, passes: Passes) -> str:
    """What a wrapper of a model would not see of its forward and backward passes."""
    name = spelled(origin)
    if origin in passes.around:
        node = passes.around[origin][1]
        return f"{ast.unparse(node)} in line {node.lineno} runs {name} without its forward"
    if origin in passes.twice:
        node = passes.twice[origin][1]
        return f"the backward pass in line {node.lineno} goes through {name} a second time"
    if (dropped := dropped_output(models, origin)) is not None:
        return f"an output of {name} is not used in line {dropped.lineno}, and its layers get no gradients"
    if origin not in passes.run:
        return f"no call of {name} was found in its training"
    if (line := state_elsewhere(models, origin)) is not None:
        return f"{line} reads the state of {name} through an object that cannot be followed"
    return ""


def _unseen_optimizer(models: Models, steps: list[OptimizerStep]) -> str:
    """A step of an optimizer that nothing in sight makes: what it trains may have no wrapper."""
    program = models.program
    for step in steps:
        held = values_of(program, step.file, step.optimizer)
        made = [(at, value) for at, value in held if isinstance(value, ast.Call)]
        seen = any(is_optimizer(at, value) or program.callee(at, value) is not None for at, value in made)
        if not seen and (made or not any(optimizer_calls(program))):
            return f"the place where {text_of(step.file, step.optimizer)} is created was not found"
    return ""


def _runs_apart(models: Models, ways: Divergence) -> str:
    """A wrapper that sends its buffers in each forward pass with gradients, where some ranks make more of them.

    Without gradients it sends them in the first one alone (`require_forward_param_sync` of DistributedDataParallel).
    """
    if not any(may_have_buffers(models, origin) for origin in models.origins):
        return ""
    for file in models.program.files:
        for call in by_place(file.scan.calls):
            if models.origin(file, call.func) is not None and ways.may_diverge(file, call, set()):
                return f"{ast.unparse(call.func)} in line {call.lineno} may run more often on one rank"
    return ""
