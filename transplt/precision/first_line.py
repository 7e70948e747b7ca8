"""The first line of a comparison, and where in the source an operator was called."""

from __future__ import annotations

import os
import re

from transplt.base.render.cell import figure, many, visible
from transplt.precision.compare import Compared, Comparison
from transplt.precision.judgement import (
    ARGUMENT,
    CUT,
    DATA,
    DRIFT,
    GRADIENT,
    OPTIMIZER,
    OVERFLOW,
    STRUCTURE,
    WEIGHTS,
    WIRING,
)

#: `File /x/model.py, line 31, in forward, \n x = self.conv(x)` of msprobe, with quotes of ptdbg.
_FRAME = re.compile(r'File "?(?P<path>.+?)"?, line (?P<line>\d+)(?:, in (?P<function>[^,\n]+))?')
#: A folder of the user's may be called as a library is: what these have below it is said, too.
_LIBRARIES = re.compile(
    r"site-packages|dist-packages|<frozen|/lib/python3|/torch/(?:nn|optim|autograd|utils|distributed|_|amp|functional)"
    r"|/msprobe/(?:pytorch|core|mindspore)/|/ptdbg_ascend/"
)


def place(frames: tuple[str, ...]) -> str:
    """`model.py:31 (forward)`: the innermost frame that is not a library's; empty without one."""
    found = [match for frame in frames if (match := _FRAME.search(frame))]
    own = [match for match in found if not _LIBRARIES.search(match["path"])] or found[-1:]
    if not own:
        return ""
    function = own[0]["function"]
    path = os.path.normpath(own[0]["path"])
    return visible(f"{path}:{own[0]['line']}" + (f" ({function})" if function else ""))


def sentence(found: Comparison) -> str:
    """What diverged first, where in the source, and how."""
    first = found.first
    before = f"{found.notes[0]}; of the common steps: " if found.notes else ""
    if first is None:
        clauses = [agreeing(found), *_behind(found), *([found.noise] if found.noise else [])]
        return f"{before}no divergence: {'; '.join(clauses)}"
    where = place(first.source)
    called = f", called at {where}" if where else ""
    return f"{before}first divergence: {_where(found, first)}{_what(first)}{called}"


def agreeing(found: Comparison) -> str:
    """What was compared and agrees."""
    compared = [each for each in found.compared if not each.noisy]
    operators = sum(each.operators for each in compared)
    steps = len({each.step for each in compared})
    where = f"{many(operators, 'operator')} in {many(steps, 'step')} and {many(len(found.npu.ranks), 'rank')}"
    covered = ["forward", *found.behind.covered]
    if len(covered) == 1:
        return f"{where} agree within the tolerance"
    return f"{', '.join(covered[:-1])} and {covered[-1]} agree ({where}, within the tolerance)"


def _behind(found: Comparison) -> list[str]:
    """What else is known of the optimizers, and what the words `no divergence` do not hold for."""
    behind = found.behind
    clauses = []
    if behind.operators:
        agree = "agrees" if behind.operators == 1 else "agree"
        clauses.append(f"{many(behind.operators, 'operator')} after the last backward pass also {agree}")
    if found.settled:
        clauses.append("operators that only one side's optimizers have gave the same weights")
    elif not behind.steps and behind.backward and len(found.steps) > 1:
        clauses.append("each step begins with the same weights")
    if behind.not_compared:
        clauses.append(behind.not_compared)
    return clauses


def _where(found: Comparison, first: Compared) -> str:
    parts = []
    if len(found.npu.ranks) > 1:
        apart = sum(each.verdict is not None for each in found.compared if each.step == first.step)
        parts.append(f"rank {first.rank}" + (f" (of {apart} that differ)" if apart > 1 else " alone"))
    if len(found.steps) > 1 or first.step:
        parts.append(f"step {first.step}")
    return ", ".join(parts) + (": " if parts else "")


def _what(first: Compared) -> str:
    verdict = first.verdict
    assert verdict is not None
    name, how = visible(verdict.name), visible(verdict.how)
    if verdict.kind == WEIGHTS:
        return f"initial weights differ: {name} is {how} (it goes into {visible(verdict.match.row.name)})"
    if verdict.kind == DATA:
        return f"input inconsistent: {name} is {how}, and no recorded operator made it{visible(verdict.more)}"
    if verdict.kind == CUT:
        return f"the gradient is cut off: {how} {name}, whose values agree (requires_grad, detach, no_grad)"
    if verdict.kind == WIRING:
        return f"input inconsistent: {name} is {how}"
    if verdict.kind == OVERFLOW:
        return f"{name}: its inputs are finite and its output is {how}"
    if verdict.kind == STRUCTURE:
        where = "after the last backward pass " if verdict.behind else ""
        return f"{where}the operators differ: {name} {'' if how.startswith('has ') else 'is '}{how}"
    if verdict.kind == DRIFT:
        return f"errors add up, and no single operator causes them; beyond the tolerance first at {name}, {how}"
    if verdict.kind == ARGUMENT:
        return f"{name}: its inputs and its output agree, and {how}"
    if verdict.kind == GRADIENT and not how.startswith("given"):
        return f"the gradients of {name} are {how}, and every operator agrees"
    if verdict.kind in (GRADIENT, OPTIMIZER):
        done = how.startswith("moved ")
        return f"the optimizer's step: {name} {'was' if done else 'is'} {how}"
    distance = f" ({figure(verdict.match.outputs, 3)} times the tolerance)" if verdict.match.outputs > 1 else ""
    if verdict.unsure:
        known = f"of its {visible(verdict.unsure)} only the largest and smallest are known"
        return f"{name}: its output is {how}{distance}, and {known}: look at this data first"
    return f"{name}: its inputs agree and its output is {how}{distance}"
