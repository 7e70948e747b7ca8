"""Gradients that no wrapper exchanges: the ranks take their mean in front of each step.

The mean of means is the mean, so that a place more does no harm. It is taken before gradients are clipped or unscaled:
a rank that found an overflow would skip a step that the others make.
"""

from __future__ import annotations

import ast

from transplt.fixers.distributed.current_program import Bench
from transplt.fixers.distributed.effects import Effects
from transplt.fixers.distributed.program.evaluations import turns_to_evaluation
from transplt.fixers.distributed.program.gradient_reads import first_reader, readers_apart
from transplt.fixers.distributed.wrapping import remark_rates
from transplt.program.cards import MOVES
from transplt.program.loops import repeated
from transplt.program.optimizers import OptimizerStep, optimizer_calls
from transplt.program.program import enclosing_function, text_of
from transplt.program.wrapper_places import buffers_apart
from transplt.syntax.nodes import block_of, by_place, call_of, ends, is_plain, last_name
from transplt.syntax.scan import FUNCTIONS, parent, statement

CODE = "NPU351"
_MESSAGE = "the mean of the gradients over the ranks"


def write_averages(bench: Bench) -> None:
    """The function that averages, its calls, and equal parameters at the start, in the file on the bench."""
    own = [step for step in bench.verdict.steps if step.file is bench.file]
    targets: list[tuple[ast.Call, ast.expr]] = []  # the optimizers that a variable holds
    for file, call, _ in optimizer_calls(bench.program):
        match parent(call):
            case ast.Assign(targets=[ast.Name() | ast.Attribute() as held]) if file is bench.file:
                targets.append((call, held))
    done: set[tuple[int, str]] = set()
    for step in own:
        _before_step(bench, step, done)
    _before_first_steps(bench, done)
    blocks: dict[int, list[tuple[ast.stmt, ast.expr]]] = {}
    for call, target in targets:
        if not bench.alike(call):
            why = "some ranks may not reach this, and all ranks must start with the same parameters"
            bench.left(call, why, "copy those of rank 0 at a line that all ranks reach: npu_port.alike(optimizer)")
        elif (node := _on_card_from(bench, call)) is not None:
            blocks.setdefault(id(block_of(node)), []).append((node, target))
    for asked in by_place(bench.file.scan.attributes.get("add_param_group", ())):
        place = statement(asked)
        if repeated(bench.program, asked) and call_of(asked) and bench.alike(asked) and bench.fits(place):
            lines = [f"{bench.call('alike')}({text_of(bench.file, asked.value)})"]
            bench.after(place, lines, CODE, "each rank draws what a growing model adds: all get that of rank 0")
    for every in blocks.values():
        for group in _before_trainings(bench, every):
            last = max((node for node, _ in group), key=ends)
            optimizers = ", ".join(text_of(bench.file, target) for _, target in group)
            lines = [f"{bench.call('alike')}({optimizers})"]
            bench.after(last, lines, CODE, "all ranks begin with the parameters of rank 0")
    remark_rates(bench)


def _before_trainings(bench: Bench, every: list[tuple[ast.stmt, ast.expr]]) -> list[list[tuple[ast.stmt, ast.expr]]]:
    """The optimizers of a block, those together between which nothing trains."""
    groups: list[list[tuple[ast.stmt, ast.expr]]] = []
    for node, target in sorted(every, key=lambda each: ends(each[0])):
        block = block_of(node)
        between = block[block.index(groups[-1][-1][0]) + 1 : block.index(node)] if groups else []
        if not groups or bench.training.first_in(bench.file, between) < len(between):
            groups.append([])
        groups[-1].append((node, target))
    return groups


def _on_card_from(bench: Bench, call: ast.Call) -> ast.stmt | None:
    """The statement behind which what an optimizer was given is on its card; None where that is somewhere else.

    A module that makes its own optimizer goes to the card later. All ranks have drawn the same parameters then.
    """
    function, node = enclosing_function(call), statement(call)
    own = [parent(each) for given in call.args for each in ast.walk(given) if getattr(each, "id", "") == "self"]
    whole = any(call_of(each) is not None for each in own)  # self.parameters()
    cls = parent(function) if function is not None and function.name == "__init__" else None
    if isinstance(cls, ast.ClassDef) and own:
        forward = any(isinstance(each, FUNCTIONS) and each.name == "forward" for each in cls.body)
        if whole or forward or any(last_name(base).endswith("Module") for base in cls.bases):
            return None
    block = block_of(node)
    for later in block[block.index(node) + 1 :]:
        moved = later.value if isinstance(later, (ast.Expr, ast.Assign)) else None
        match moved:
            case ast.Call(func=ast.Attribute(value=model, attr=method)) if method in MOVES:
                node = later if bench.models.origin(bench.file, model) is not None else node
    return node


def _before_step(bench: Bench, step: OptimizerStep, done: set[tuple[int, str]]) -> None:
    text, name = text_of(bench.file, step.optimizer), bench.call("average")
    if step.closure is not None:
        for file, call in bench.training.backwards:
            if file is bench.file and enclosing_function(call) is step.closure:
                bench.after(statement(call), [f"{name}({text})"], CODE, _MESSAGE)
                _closure_loss(bench, step, call)
        return
    for node in {id(each): each for each in (first_reader(bench.training, step), *readers_apart(step))}.values():
        if (id(node), text) not in done:
            done.add((id(node), text))
            bench.before(node, [f"{name}({text})"], CODE, _MESSAGE)


def _before_first_steps(bench: Bench, done: set[tuple[int, str]]) -> None:
    """In front of the first of two steps, which moves the parameters along their gradients to look around (SAM)."""
    for call in by_place(bench.file.scan.attributes.get("first_step", ())):
        step = call_of(call)
        place, text = statement(call), text_of(bench.file, call.value)
        if step is not None and bench.training.in_region(bench.file, step) and (id(place), text) not in done:
            done.add((id(place), text))
            bench.before(place, [f"{bench.call('average')}({text})"], CODE, _MESSAGE)


def _closure_loss(bench: Bench, step: OptimizerStep, call: ast.Call) -> None:
    """What a closure returns decides the step: it is the mean over the ranks."""
    assert isinstance(call.func, ast.Attribute) and step.closure is not None
    loss = call.func.value
    returned = [
        node.value
        for node in bench.file.scan.returns
        if enclosing_function(node) is step.closure and isinstance(node.value, ast.Name)
    ]
    if not isinstance(loss, ast.Name) or not returned or returned[0].id != loss.id:
        return
    mean, why = bench.new_name(f"mean_{loss.id}"), f"the mean of {loss.id} over the ranks"
    bench.after(statement(call), [f"{mean} = {bench.call('mean_over_ranks')}({loss.id})"], "NPU345", why)
    for node in returned:
        bench.change(node, "NPU345", why, mean)


def write_buffers(bench: Bench, effects: Effects) -> None:
    """Running statistics are those of rank 0 wherever a model is evaluated. A wrapper sees to that in its forward pass,
    unless it was told not to."""
    if not any(b"BatchNorm" in file.source.utf8 for file in bench.program.files):
        return
    for node in by_place([*bench.file.scan.attributes.get("eval", ()), *bench.file.scan.attributes.get("train", ())]):
        call = call_of(node)
        if call is None or not turns_to_evaluation(call) or _is_wrapped(bench, node.value):
            continue
        place = statement(call)
        stays = isinstance(place, (ast.Expr, ast.Assign, ast.Return)) and bench.fits(place)
        if not stays or not is_plain(node.value):
            continue
        if effects.runs_after_start(call) and bench.alike(call):
            lines = [f"{bench.call('buffers_of_first')}({text_of(bench.file, node.value)})"]
            bench.before(place, lines, CODE, "all ranks evaluate with the statistics of rank 0")


def _is_wrapped(bench: Bench, node: ast.expr) -> bool:
    function = enclosing_function(node)
    every = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs] if function is not None else []
    if any(argument.arg == getattr(node, "id", "") for argument in every):
        return False  # it may be given another model, or the bare one
    origin = bench.models.origin(bench.file, node)
    wrap = bench.wraps.get(origin) if origin else None
    return wrap is not None and not buffers_apart(bench.models, wrap.origin)
