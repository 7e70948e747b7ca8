"""The first step of W ranks, held against W runs of one process that have a rank's share of the data each.

Where the batches of all ranks cannot be one batch (batch norms, shapes that are fixed to the batch size), this still
holds: each rank computes the loss that one process computes on its share, and what is stepped with is the mean of the
gradients. Means of projections are projections of the mean, so the figures that a trace has are enough.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from transplt.proof.prove.found import Difference, Rounding
from transplt.proof.prove.ranks import exchanged, factor_of
from transplt.proof.prove.steps import NOISE, farthest, gaps, gradient_gap, loss_gap
from transplt.proof.prove.tolerance import Tolerance
from transplt.proof.prove.training import Training, TrainingStep

#: The remark about ranks that were held against such runs.
REMARK = "the gradients of the first step are the mean of those of one process on each rank's share"


def with_losses_of(one: Training, ranks: Sequence[Training]) -> tuple[Training, str] | None:
    """Rank 0 with the losses of one process, since its gradients alone can be held against those there, where the ranks
    share out what one process computes with, though no loader tells: the first call of a network that trains is given
    less than there, or the same bytes. What is as large and other is a batch of a rank's own: None."""
    whole, *parts = (next((each.fields.get("given") or [] for each in side.of("others")), []) for side in (one, *ranks))
    if not whole or not all(parts):
        return None
    if all(part[0] >= whole[0] for part in parts) and any(part != whole for part in parts):
        return None
    twins = ((one.step(step.optimizer, step.number), step) for step in ranks[0].steps)
    steps = (replace(step, losses=twin.losses) if twin is not None else step for twin, step in twins)
    return replace(ranks[0], steps=tuple(steps)), ""


def first_step(
    alone: Sequence[Training], ranks: Sequence[Training], rounding: Rounding, shaken: Sequence[Training]
) -> Difference | None:
    """What differs; `alone[r]` is one process with the share of `ranks[r]`, `shaken` are runs of the first of them with
    parameters off by roundings. ValueError where they took no such step."""
    tolerance = Tolerance.of(rounding, alone[0], shaken, gaps)
    taken = [next((step for step in training.steps if not step.skipped), None) for training in (*alone, *ranks)]
    steps = [step for step in taken if step is not None]
    if len(steps) < len(taken) or len({(step.optimizer, step.number) for step in steps}) > 1:
        raise ValueError("one process took no step on the share of a rank")
    singles, shared = steps[: len(alone)], steps[len(alone) :]
    for rank, one, other in zip(ranks, singles, shared, strict=True):
        for mine, theirs in zip(one.losses, other.losses, strict=False):
            apart = loss_gap(("loss", one.optimizer, one.number, 0), mine, theirs, 1, rounding)
            if any(not gap.share <= tolerance.bound(gap) for gap in apart):
                what = f"the loss of step 1 on rank {rank.rank} is not that of one process on the same share"
                return Difference(what, theirs.place, mine.place, 1)
    return _gradients(singles, shared[0], ranks[0], tolerance)


def _gradients(
    singles: Sequence[TrainingStep], step: TrainingStep, rank: Training, tolerance: Tolerance
) -> Difference | None:
    total = math.sqrt(sum(each[0] ** 2 for each in step.gradients if each is not None))
    ratios: list[float] = []
    first: Difference | None = None
    for place, after in enumerate(step.gradients):
        shares = [one.gradients[place] for one in singles if place < len(one.gradients)]
        present = [each for each in shares if each is not None]
        if after is None or len(present) < len(singles):
            continue  # a part of the network that a share does not reach
        mean = sum(each[1] for each in present) / len(present)
        size = max(each[0] for each in present)
        if max(after[0], size) <= NOISE * total:
            continue
        name = rank.optimizers[step.optimizer].name(place)
        what = f"the gradient of {name} at step 1 is not the mean of those of one process on each rank's share"
        difference = Difference(what, step.place, singles[0].place, 1)
        named = ("gradient", step.optimizer, step.number, place)
        apart = farthest([mean], [after[1]])
        gap = gradient_gap(named, apart, max(after[0], size), total, tolerance.rounding, difference)
        if not gap.share <= tolerance.bound(gap):
            first = first or difference
            ratios.append(after[1] / mean if mean else math.inf)
    if first is None:
        return None
    if why := factor_of(ratios, len(singles)):
        return Difference(first.what, exchanged(rank, step) or first.place, first.original, 1, why)
    return first
