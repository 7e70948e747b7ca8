"""The first line of a comparison, and where in the source an operator was called."""

from __future__ import annotations

import os
import re

from transplt.precision.behind import Behind
from transplt.precision.compare import Compared, Comparison
from transplt.precision.judge import DATA, DRIFT, GRADIENT, OPTIMIZER, OVERFLOW, STRUCTURE, WEIGHTS, WIRING
from transplt.render.cell import figure, many, visible

#: `File /x/model.py, line 31, in forward, \n x = self.conv(x)` of msprobe, with quotes of ptdbg.
_FRAME = re.compile(r'File "?(?P<path>.+?)"?, line (?P<line>\d+)(?:, in (?P<function>[^,\n]+))?')
_LIBRARIES = ("site-packages", "dist-packages", "/torch/", "/msprobe/", "/ptdbg_ascend/", "<frozen", "/lib/python3")


def place(frames: tuple[str, ...]) -> str:
    """`model.py:31 (forward)`: the innermost frame that is not a library's; empty without one."""
    found = [match for frame in frames if (match := _FRAME.search(frame))]
    own = [match for match in found if not any(part in match["path"] for part in _LIBRARIES)] or found[-1:]
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
        operators = sum(each.operators for each in found.compared)
        agreeing = (
            f"{many(operators, 'operator')} in {many(len(found.steps), 'step')} and "
            f"{many(len(found.npu.ranks), 'rank')} agree within the tolerance"
        )
        behind = found.behind
        kind = "no divergence in forward and backward" if behind.left or behind.not_compared else "no divergence"
        return f"{before}{kind}: {'; '.join([agreeing, *_behind(behind)])}"
    return f"{before}first divergence: {_where(found, first)}{_what(first)}{_line(first)}"


def _behind(behind: Behind) -> list[str]:
    """What the words `no divergence` do not hold for."""
    clauses = []
    if behind.left:
        clauses.append(f"behind the last backward pass {behind.left_of_it}: what the optimizers do was not compared")
    elif behind.agree:
        clauses.append(
            f"so do {many(behind.agree, 'operator')} behind the last backward pass; what else the optimizers do, and "
            "with which settings, was not recorded"
        )
    if behind.arguments:
        clauses.append(f"{many(behind.arguments, 'operator')} behind the last backward pass with other arguments")
    if behind.not_compared:
        clauses.append(f"not recorded and not compared: {behind.not_compared}")
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
    if verdict.kind == WIRING:
        return f"input inconsistent: {name} is {how}"
    if verdict.kind == OVERFLOW:
        return f"{name}: its inputs are finite and its output is {how}"
    if verdict.kind == STRUCTURE:
        return (
            f"the operators differ: {name} {how}"
            if how.startswith("has ")
            else f"the operators differ: {name} is {how}"
        )
    if verdict.kind == DRIFT:
        return f"errors add up without one operator at fault; beyond the tolerance first at {name}, {how}"
    if verdict.kind == GRADIENT:
        return f"the gradients of {name} are {how}, and every operator agrees"
    if verdict.kind == OPTIMIZER:
        return f"the optimizer's step: {name} is {how}"
    distance = f" ({figure(verdict.match.outputs, 3)} times the tolerance)" if verdict.match.outputs > 1 else ""
    return f"{name}: its inputs agree and its output is {how}{distance}"


def _line(first: Compared) -> str:
    where = place(first.source)
    return f", called at {where}" if where else ""
