"""What one process and W have in common even where they cannot have the same batches: numbers of the optimizers, how
many steps they take, of how many backward passes, and about how large losses and gradients are.

Batch norms, draws and batches that do not divide evenly change a loss by some percent; a sum in place of a mean, or a
learning rate times W, changes it by the factor W.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import islice
from pathlib import Path

from transplt.base.render.cell import figure
from transplt.proof.prove import loaders
from transplt.proof.prove.found import Difference, Rounding
from transplt.proof.prove.rank_conditions import read_source
from transplt.proof.prove.ranks import exchanged
from transplt.proof.prove.slices import behind
from transplt.proof.prove.steps import SETTING, gaps, pairs
from transplt.proof.prove.training import Place, Training, TrainingStep

#: How far the first ratios may be from a factor; behind the first step the parameters are others.
_NEAR = (0.1, 0.3, 0.3)
#: How far one may be from a loss that nothing has divided by the ranks, and how many statements before it tell.
_ABOUT, _BEFORE = 0.2, 4


def other_sizes(
    one: Training, ranks: Sequence[Training], mean: Training, rounding: Rounding, *, same_data: bool,
    root: Path,
) -> Difference | None:
    """What differs between one process and `ranks` by more than their batches make it; `mean` is rank 0 with the mean
    losses of all. Without the `same_data` only the first step has numbers that both set alike."""
    decided = any("metric" in event.fields for each in (one, *ranks) for event in each.of("scheduler"))
    # With batches that only the ranks have, a training to the end may take a step more or less.
    whole = same_data and not one.cut and not ranks[0].cut and loaders.uneven_from(ranks) is None
    for gap in gaps(one, ranks[0], rounding):
        setting = gap.figure[:1] == (SETTING,) and (gap.difference.step == 1 or (same_data and not decided))
        if setting or (whole and gap.figure[:1] == ("number",)):
            return gap.difference
    passes = _other_passes(one, ranks[0], len(ranks)) if same_data else None
    asked = (each(one, ranks[0], mean, which, len(ranks)) for which in one.optimizers
             for each in (_times, partial(_undivided, root=root)))  # fmt: skip
    return passes or next(filter(None, asked), None)


def _other_passes(one: Training, rank: Training, world: int) -> Difference | None:
    """One of the first steps behind more backward passes than in one process, or fewer, but for parts of one batch."""
    for left, right in islice(pairs(one, rank), len(_NEAR)):
        given, before = (
            [sum(each.index < step.index for each in side.of(kind)) for side, step in ((one, left), (rank, right))]
            for kind in ("batch", "backward")
        )
        if before[0] != before[1] and not (given[0] == given[1] > 0 and before[0] == world * before[1]):
            number = right.number + 1
            what = f"step {number} follows {before[1]} backward passes, with one process {before[0]}"
            return Difference(what, right.place, left.place, number, event=True)
    return None


def _times(one: Training, rank: Training, mean: Training, which: int, world: int) -> Difference | None:
    """Losses or gradients of the first steps of an optimizer that are W times those of one process, or a W-th."""
    first = [*islice((both for both in pairs(one, mean) if both[0].optimizer == which), len(_NEAR))]
    losses = [_ratio(_loss(left), _loss(right)) for left, right in first]
    gradients = [_ratio(_norm(one, left), _norm(mean, right)) for left, right in first]
    if not first:
        return None
    left, right = first[0]
    if _are(losses, world) and not _are(gradients, 1):  # else the exchange divides again what it multiplied
        what = f"the loss of step 1 is {figure(_loss(right))}, with one process {figure(_loss(left))}"
        place = right.losses[0].place
        return Difference(what, place, left.losses[0].place, 1, f"multiplied by the {world} ranks")
    summed = "the mean over the ranks of a loss that each sums up over its share"
    small = summed if _are(losses, 1 / world) else "divided by the ranks twice"
    for factor, cause in ((world, "summed over the ranks and not divided"), (1 / world, small)):
        if _are(gradients, factor):
            what = f"the gradients of step 1 have the norm {figure(_norm(mean, right))}, "
            what += f"in one process {figure(_norm(one, left))}"
            place = exchanged(rank, right) or right.place
            return Difference(what, place, left.place, 1, f"{factor:g} times as large: {cause}", event=True)
    return None


def _undivided(one: Training, rank: Training, mean: Training, which: int, *_: int, root: Path) -> Difference | None:
    """A first step with sums over the ranks as they are, of a loss about as large as in one process that no line near
    the backward pass divides: of a part of it the sums would be right."""
    for left, right in islice((both for both in pairs(one, mean) if both[0].optimizer == which), 1):
        sums = {tuple(event.fields["p"][:2]): event.place for event in rank.of("summed")
                if event.index < right.index and event.fields["p"]}  # fmt: skip
        places = [sums.get(tuple(each[:2])) for each in right.gradients if each is not None]
        alike = math.isclose(_ratio(_loss(left), _loss(right)), 1, rel_tol=_ABOUT)
        if alike and places and None not in places and not _divides(right.losses[0].place, root):
            what = "the gradients of step 1 are sums over the ranks, of a loss about as large as in one process"
            return Difference(what, places[0], left.place, 1, "summed over the ranks and not divided", event=True)
    return None


def _divides(place: Place | None, root: Path) -> bool:
    """Whether a line of a loss, or one near before it, divides something, or is not known."""
    text = read_source(str(root / place.path)) if place is not None else None
    if text is None or place is None:
        return True
    lines = text.splitlines()
    return any("/" in lines[line - 1] for part in islice(behind(text, place.line), _BEFORE) for line in part)


def _ratio(one: float, other: float) -> float:
    return other / one if one > 0 and math.isfinite(one) and math.isfinite(other) else math.nan


def _are(ratios: Sequence[float], factor: float) -> bool:
    near = (math.isclose(ratio, factor, rel_tol=off) for ratio, off in zip(ratios, _NEAR, strict=False))
    return all(near) and bool(ratios)


def _loss(step: TrainingStep) -> float:
    """The sum of the losses of a step, nan where one is no number."""
    values = [loss.value for loss in step.losses]
    return math.fsum(values) if values and all(isinstance(each, (int, float)) for each in values) else math.nan


def _norm(training: Training, step: TrainingStep) -> float:
    """That of all gradients of a step, before they are clipped: behind it they have the norm that is allowed."""
    before = max((each.index for each in training.steps if each.index < step.index), default=-1)
    clips = [each.fields.get("norm") for each in training.of("clip") if before < each.index < step.index]
    if clips and clips[0] is not None:
        return float(clips[0])
    return math.sqrt(sum(each[0] ** 2 for each in step.gradients if each is not None))
