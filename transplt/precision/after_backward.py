"""What runs behind the last backward pass: gradients that are changed, optimizers, and what follows them.

Operators there count as all others: those that one side has alone, those that take something else in, those with
another argument. Where both sides recorded the steps of their optimizers (`optimizer.json`), these say whether
gradients, settings, states and weights agree; operators inside an optimizer are then left out, as one that takes all
parameters at once computes the same by others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields

from transplt.precision.align import in_optimizer
from transplt.precision.harmless_operators import harmless_behind, moves, writes_in_place
from transplt.precision.judgement import (
    GRADIENT,
    OPTIMIZER,
    STRUCTURE,
    WORSE,
    AllMetrics,
    Judgement,
    how_far,
    one_sided,
    telling_argument,
)
from transplt.precision.match import Match, Matched
from transplt.precision.record import BACKWARD, MODULE
from transplt.precision.steps import steps_of

#: Where torch itself changes gradients and weights: the next step's weights show whether it did the same.
_OF_TORCH = ("/optim/", "/clip_grad.py", "/torch/_foreach_utils", "/utils/_foreach_utils")


@dataclass(frozen=True, slots=True)
class Behind:
    """Numbers of what ran behind the last backward pass."""

    backward: bool = False  #: there is such a pass
    gradients: int = 0  #: modules whose parameters' gradients were compared
    operators: int = 0  #: that both sides have, and that agree
    steps: int = 0  #: of optimizers that both sides recorded
    left_out: int = 0  #: operators inside optimizers that both recorded

    @property
    def covered(self) -> tuple[str, ...]:
        """What was compared besides the forward pass."""
        found = ["backward"] if self.backward else []
        found += ["gradients"] if self.gradients or self.steps else []
        return (*found, "the optimizer's steps") if self.steps else tuple(found)

    @property
    def not_compared(self) -> str:
        """What the dumps have nothing of on both sides; empty where all was compared, or without a backward pass."""
        if not self.backward or self.steps:
            return ""
        gradients = "" if self.gradients else "the gradients of parameters"
        optimizer = "the settings of the optimizer" if self.operators else "the optimizer"
        both = " and ".join(filter(None, (gradients, optimizer)))
        return f"{both} {'were' if gradients or self.operators else 'was'} not recorded"


def behind(matched: Matched) -> Behind:
    """Of one rank in one step."""
    rows = [*rows_behind(matched)]
    agree = sum(not each.one_sided and max(each.inputs, each.outputs) <= 1 for each in rows)
    backward = any(each.row.phase == BACKWARD for each in matched.model)
    return Behind(backward, len(matched.gradients), agree, len(matched.steps), len(matched.optimizer) - len(rows))


def together(every: Iterable[Behind]) -> Behind:
    """Of all ranks and steps."""
    parts = [*every]
    return Behind(**{field.name: sum(getattr(each, field.name) for each in parts) for field in fields(Behind)})


def judge_behind(matched: Matched, metrics: AllMetrics) -> Judgement | None:
    """The first divergence behind the backward pass."""
    for each in matched.gradients:
        if each.one_sided:
            if matched.steps:  # what they are given shows it, whoever called the module
                continue
            return _behind(Judgement(STRUCTURE, each, one_sided(each), each.row.name, each.position))
        if each.outputs > 1:
            found = Judgement(GRADIENT, each, how_far(each.worst, metrics), each.row.name, each.position, each.worst)
            return _behind(_cause(matched, metrics, given=False) or found)
    steps = [*steps_of(matched)]
    for step in steps:
        if (taken := step.gradients()) is not None:
            return _behind(_cause(matched, metrics, given=False) or _cut(matched) or taken)
        if (own := step.own()) is not None:
            return _behind(own)
    if (left := next((other for step in steps if (other := step.left()) is not None), None)) is not None:
        return _behind(_cause(matched, metrics) or left)
    return _behind(_cause(matched, metrics, proved=bool(steps)))


def changed_at_start(matched: Matched) -> Match | None:
    """An operator at the start of a step that one side has alone, and that writes into a tensor."""
    for each in matched.model:
        if each.row.kind == MODULE:
            return None
        if each.one_sided and each.row.api.endswith("_") and not moves(each.row):
            return each
    return None


def judge_noisy(matched: Matched) -> Judgement | None:
    """What is compared where weights are apart by noise: the optimizers' settings, and what wrote before the model ran.
    """
    if (each := changed_at_start(matched)) is not None:
        return Judgement(STRUCTURE, each, one_sided(each), each.row.name, each.position)
    return judge_settings(matched)


def judge_settings(matched: Matched) -> Judgement | None:
    """Of the optimizers' settings alone."""
    found = (step.settings() for step in steps_of(matched))
    return _behind(next((each for each in found if each is not None), None))


def _behind(found: Judgement | None) -> Judgement | None:
    if found is not None:
        found.behind = True
    return found


def _cause(matched: Matched, metrics: AllMetrics, *, proved: bool = False, given: bool = True) -> Judgement | None:
    """The first operator there that differs. `proved`: what optimizers took and left is known to be the same, so what
    one side has alone did nothing to it. Without `given`, one that takes other gradients in and leaves
    them is no cause."""
    rows = [*rows_behind(matched)]
    spared = harmless_behind(rows, matched)
    for number, each in enumerate(rows):
        name, position = each.row.name, each.position
        if each.one_sided:
            if number in spared or (proved and not _follows(matched, each)):
                continue
            found = Judgement(STRUCTURE, each, one_sided(each), name, position)
            found.settled_later = not matched.steps and _is_of_torch(matched, each)
            return found
        if each.outputs > 1 and each.outputs > WORSE * each.inputs:
            clause = how_far(each.worst, metrics)
            clause += f"; {argument}" if (argument := telling_argument(each)) else ""
            return Judgement(OPTIMIZER, each, clause, name, position, each.worst)
        if each.inputs > 1 and not given and not writes_in_place(each.row):
            return None
        if each.inputs > 1:
            clause = f"given what is {how_far(each.worst_input, metrics)}, and no recorded operator caused this"
            return Judgement(OPTIMIZER, each, clause, name, position, each.worst_input)
        if argument := telling_argument(each):
            return Judgement(OPTIMIZER, each, f"alike in its figures, and {argument}", name, position)
    return None


def _cut(matched: Matched) -> Judgement | None:
    """Gradients that one side cuts: of what does it for all of them at once only the norms are recorded."""
    for each in rows_behind(matched):
        if each.one_sided and not moves(each.row) and _is_of_torch(matched, each):
            return Judgement(STRUCTURE, each, one_sided(each), each.row.name, each.position)
    return None


def rows_behind(matched: Matched) -> Iterator[Match]:
    """The operators behind the last backward pass, those inside of optimizers left out if their steps are known."""
    for each in matched.optimizer:
        if not (matched.steps and in_optimizer(_frames(matched, each))):
            yield each


def _frames(matched: Matched, each: Match) -> tuple[str, ...]:
    if matched.parts is None:
        return ()
    npu, bench = matched.parts
    if each.npu is not None:
        return matched.stacks_of(npu).get(each.npu.name, ())
    return matched.stacks_of(bench).get(each.row.name, ())


def _is_of_torch(matched: Matched, each: Match) -> bool:
    frames = _frames(matched, each)
    return bool(frames) and any(part in frames[0] for part in _OF_TORCH)


def _follows(matched: Matched, each: Match) -> bool:
    """Whether an operator ran behind the last one of an optimizer, whose work nothing shows any more."""
    inside = [other.position for other in matched.optimizer if in_optimizer(_frames(matched, other))]
    return bool(inside) and each.position > max(inside)
