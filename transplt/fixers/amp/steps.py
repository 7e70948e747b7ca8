"""Steps of optimizers: where gradients are read before one, and where an iteration's last step is."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from itertools import pairwise

from transplt.fixers.amp.reading import in_functions, own_nodes, zeroes
from transplt.program.loops import LOOPS, excludes, lifted, loops_around
from transplt.program.optimizers import NO_OPTIMIZER, OptimizerStep, optimizer_stepped
from transplt.program.program import File, Program, enclosing_function, text_of
from transplt.program.steps import is_backward_pass
from transplt.syntax.nodes import begins, block_of, by_place, call_of, ends, inner_nodes, last_name
from transplt.syntax.scan import FUNCTIONS, parent, statement

#: Calls that read or change gradients, by the last part of their name.
_CLIPS = re.compile(r"clip_grad|grad\w*_clip|clip_gradient|clipping|grad(?:ient)?s?_norm|average_grad|sync_grad", re.I)


@dataclass(frozen=True, slots=True)
class Read:
    """Gradients of an optimizer are read or changed: from the statement `before` on they have to be unscaled."""

    before: ast.stmt
    optimizer: ast.expr
    node: ast.AST


def last_steps(steps: list[OptimizerStep], backwards: list[ast.Call]) -> tuple[list[ast.stmt], ast.stmt | None]:
    """The statements behind which an iteration has no step left, for each loop that holds steps of its own.

    An optimizer that takes two steps needs an update between them, which no gradients of another may outlast: the
    second value is a statement whose steps come without a backward pass behind the steps before.
    """
    groups: dict[tuple[int, int], list[OptimizerStep]] = {}
    for step in steps:
        loops = loops_around(step.stmt)
        groups.setdefault((id(enclosing_function(step.stmt)), id(loops[0]) if loops else 0), []).append(step)
    found: list[ast.stmt] = []
    late: list[ast.stmt] = []
    for group in groups.values():
        found += _last(group, backwards, late)
    return sorted(found, key=begins), late[0] if late else None


def _last(group: list[OptimizerStep], backwards: list[ast.Call], late: list[ast.stmt]) -> list[ast.stmt]:
    block = block_of(group[0].stmt)
    while any(lifted(step.stmt, block) is None for step in group):
        above = parent(block[0])
        while not isinstance(above, ast.stmt):
            above = parent(above)
        block = block_of(above)
    places = [index for step in group if (index := lifted(step.stmt, block)) is not None]
    if any(step.stmt in block for step in group) and not _twice(group):
        return [block[max(places)]]
    if _twice(group):
        for before, at in pairwise(sorted(set(places))):
            start, end = ends(block[before]), ends(block[at])
            if not any(start <= begins(call) < end for call in backwards):
                late.append(block[at])
    found: list[ast.stmt] = []
    for place in sorted(set(places)):
        inner: dict[int, list[OptimizerStep]] = {}
        for step, at in zip(group, places, strict=True):
            if at == place and step.stmt is block[place]:
                found.append(step.stmt)
            elif at == place:
                inner.setdefault(id(_branch(step.stmt, block[place])), []).append(step)
        for branch in inner.values():
            found += _last(branch, backwards, late)
    return found


def _twice(group: list[OptimizerStep]) -> bool:
    """True when an optimizer takes more than one step: the scaler has to be updated between them."""
    names = [ast.dump(step.optimizer) for step in group]
    return len(set(names)) < len(names)


def _branch(node: ast.stmt, stop: ast.stmt) -> list[ast.stmt]:
    """The block of the statement `stop` that holds a node."""
    while parent(node) is not stop:
        above = parent(node)
        if not isinstance(above, ast.stmt):  # an except clause, a case
            return block_of(node)
        node = above
    return block_of(node)


def exits(scope: ast.AST, opened: list[ast.stmt], updates: list[ast.stmt]) -> tuple[list[ast.stmt], ast.stmt | None]:
    """The `continue`, `break` and `return` that leave an iteration between a step, or gradients that are unscaled, and
    the update: it has to come before them too, for the scaler takes neither twice.

    The second value is one of them before which it is not certain that anything is `opened`.
    """
    found: list[ast.stmt] = []
    for node in own_nodes(scope):
        if not isinstance(node, (ast.Continue, ast.Break, ast.Return)):
            continue
        loops = [] if isinstance(node, ast.Return) else loops_around(node)[:1]
        before = [
            stmt
            for stmt in opened
            if begins(stmt) < begins(node)
            and enclosing_function(stmt) is enclosing_function(node)
            and all(loop in loops_around(stmt) for loop in loops)
            and not excludes(stmt, node)
            and not any(begins(stmt) < ends(done) <= begins(node) for done in updates)
        ]
        if before and not any(lifted(node, block_of(stmt)) is not None for stmt in before):
            return [], node
        if before:
            found.append(node)
    return sorted(found, key=begins), None


def crossing(steps: list[OptimizerStep], backwards: list[ast.Call]) -> OptimizerStep | None:
    """A step in an outer loop with a backward pass before the inner loop that has steps too: gradients made under one
    scale would be divided by another."""
    for step in steps:
        around = loops_around(step.stmt)
        for other in steps:
            inner = loops_around(other.stmt)
            elsewhere = enclosing_function(other.stmt) is not enclosing_function(step.stmt)
            if other is step or elsewhere or len(inner) <= len(around):
                continue
            if around and around[0] not in inner:
                continue
            loop = inner[len(inner) - len(around) - 1]
            outer = [call for call in backwards if loops_around(call) == around]
            if any(begins(call) < begins(loop) < begins(step.call) for call in outer):
                return step
    return None


def gradient_reads(
    program: Program, file: File, scope: ast.AST, steps: list[OptimizerStep], backwards: list[ast.Call]
) -> tuple[list[Read], list[ast.AST]]:
    """What reads gradients before a step, the first for each step, and what does so where no step follows for sure.

    All optimizers that step before the next backward pass count: which gradients are theirs cannot be seen.
    """
    found: dict[int, list[tuple[ast.stmt, ast.AST]]] = {}
    lost: list[ast.AST] = []
    for node in own_nodes(scope):
        if not _reads_gradients(program, file, node):
            continue
        following = _steps_after(steps, node, backwards)
        if not following and (_clips(node) or _scaled_still(steps, node, backwards)):
            lost.append(node)
        for step in following:
            block = block_of(step.stmt)
            place = lifted(node, block)
            if place is None or statement(step.call) is not step.stmt:
                lost.append(node)
            else:
                found.setdefault(id(step), []).append((block[place], node))
    reads: list[Read] = []
    for step in steps:
        places = found.get(id(step), [])
        if not places:
            continue
        first, node = min(places, key=lambda item: begins(item[0]))
        before = statement(node) if len(places) == 1 and not _repeats(node, first) else first
        reads.append(Read(before, step.optimizer, node))
    return reads, lost


def no_step(file: File, backward: ast.Call) -> str:
    """Why no step belongs to a backward pass: none is there, or what takes it is not seen to be an optimizer."""
    for node in by_place(file.scan.attributes.get("step", ())):
        call = call_of(node)
        own = enclosing_function(node) is enclosing_function(backward) and begins(node) > begins(backward)
        if own and call is not None and not call.args and not NO_OPTIMIZER.search(last_name(node.value)):
            text = text_of(file, node.value)
            return f"the place where the optimizer {text} of the next step is created was not found"
    return "no optimizer step follows this backward pass in the same function"


def limiting_hook(file: File) -> ast.Call | None:
    """`p.register_hook(lambda g: g.clamp(-1, 1))`: a hook that limits gradients sees those that are scaled."""
    functions = {item.name: item for item in file.scan.functions}
    for name in ("register_hook", "register_post_accumulate_grad_hook", "register_full_backward_hook"):
        for node in file.scan.attributes.get(name, ()):
            call = call_of(node)
            given = call.args[0] if call is not None and call.args else None
            hook = functions.get(given.id) if isinstance(given, ast.Name) else given
            if call is not None and isinstance(hook, (*FUNCTIONS, ast.Lambda)):
                called = {last_name(at.func) for at in inner_nodes(hook, ast.Call)}
                if called & {"clamp", "clamp_", "clip", "clip_", "clip_grad_norm_", "clip_grad_value_"}:
                    return call
    return None


def _scaled_still(steps: list[OptimizerStep], node: ast.AST, backwards: list[ast.Call]) -> bool:
    """True for gradients between a backward pass and the next: no step divides them by the scale. A sign has none."""
    above = parent(node)
    if isinstance(above, ast.Call) and node in above.args:
        above = above.func
    while isinstance(above, ast.Attribute):
        if above.attr in ("sign", "sign_"):
            return False
        above = parent(above)
    place = begins(node)
    function = enclosing_function(node)
    every = (*backwards, *(step.call for step in steps))
    calls = [call for call in every if enclosing_function(call) is function]
    before = [call for call in calls if begins(call) < place]
    return bool(before) and max(before, key=begins) in backwards


def _repeats(node: ast.AST, top: ast.stmt) -> bool:
    """True when something stands in a loop below a statement, or in a clause that is no plain block."""
    at: ast.AST = statement(node)
    while at is not top:
        above = parent(at)
        if not isinstance(above, (ast.If, ast.With)):
            return True
        at = above
    return isinstance(top, LOOPS) and at is top and statement(node) is not top


def _reads_gradients(program: Program, file: File, node: ast.AST) -> bool:
    if _reads_gradient(node):
        return True
    if not isinstance(node, ast.Call):
        return False
    if _clips(node):
        return True
    callee = program.callee(file, node)
    if not isinstance(callee, FUNCTIONS) or callee.name in ("forward", "__init__"):
        return False
    owner = program.owner[callee]
    calls = inner_nodes(callee, ast.Call)
    if any(is_backward_pass(at) or optimizer_stepped(program, owner, at) is not None for at in calls):
        return False
    for at, call in in_functions(program, owner, callee):
        if _clips(call) and at is owner:
            return True
    return any(map(_reads_gradient, own_nodes(callee)))


def _reads_gradient(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(attr="grad", ctx=ast.Load()):
            return not _unread(node)
    return False


def _clips(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and bool(_CLIPS.search(last_name(node.func)))


def _unread(node: ast.Attribute) -> bool:
    """True where a gradient is set to zero, and for a test such as `p.grad is None`."""
    above = parent(node)
    while isinstance(above, ast.Attribute):
        above = parent(above)
    tested = isinstance(above, ast.Compare) and any(isinstance(op, (ast.Is, ast.IsNot)) for op in above.ops)
    return tested or zeroes(node)


def _steps_after(steps: list[OptimizerStep], node: ast.AST, backwards: list[ast.Call]) -> list[OptimizerStep]:
    """The steps behind a node, up to the next backward pass, without those of other branches."""
    place = begins(node)
    return [
        step
        for step in steps
        if begins(step.call) >= place
        and not any(place < begins(call) < begins(step.call) for call in backwards)
        and not excludes(node, step.stmt)
    ]
