"""Holds one training against another, step by step: the figures that differ, and by how much."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from transplt.base.render.cell import figure
from transplt.proof.prove.found import Curve, Difference, Rounding
from transplt.proof.prove.tolerance import ROUNDING, Figure, Gap
from transplt.proof.prove.training import Loss, Optimizer, Training, TrainingStep

#: A gradient below this share of all gradients is rounding; what an optimizer makes of its sign means nothing.
NOISE = 1e-6
#: A sum of many numbers, such as a loss, is off by more than each of them is.
_SUMMED = 4.0
#: In half precision a gradient is off by what comes of some elements that count, or do not.
_TURNED = 64.0
#: Numbers of an optimizer that have a name beside the one in its groups, with their verb.
_SPOKEN = {"lr": "the learning rate is", "weight_decay": "the weight decay is", "betas": "the betas are"}
#: What the figure of a number of an optimizer begins with.
SETTING = "hyper"


def pairs(one: Training, other: Training) -> Iterator[tuple[TrainingStep, TrainingStep]]:
    """The steps that both took, in the order of the first."""
    known = {(step.optimizer, step.number): step for step in other.steps}
    for step in one.steps:
        match = known.get((step.optimizer, step.number))
        if match is not None:
            yield step, match


def in_common(*trainings: Training) -> tuple[Training, ...]:
    """All up to the last step that each of them took: one of them stopped behind it."""
    taken = [{(step.optimizer, step.number): step.index for step in each.steps} for each in trainings]
    every = set.intersection(*({*each} for each in taken)) if taken else set()
    last = (max((each[step] for step in every), default=-1) for each in taken)
    return tuple(training.until(index) for training, index in zip(trainings, last, strict=True))


def gaps(one: Training, other: Training, rounding: Rounding) -> Iterator[Gap]:
    """Every figure that the two do not have to the bit in common, step by step."""
    begun: set[int] = set()
    both = zip(one.steps, other.steps, strict=False)
    parted = next((left.index for left, right in both if left.optimizer != right.optimizer), math.inf)
    for left, right in pairs(one, other):
        if left.index >= parted:  # what follows comes of a step too much
            yield from _in_number(one, other)
            parted = math.inf
        made, remade = one.optimizers.get(left.optimizer), other.optimizers.get(right.optimizer)
        if made is None or remade is None:
            continue
        if left.optimizer not in begun:
            begun.add(left.optimizer)
            yield from _at_the_start(made, remade, left, right)
        yield from _at_a_step(remade, left, right, rounding)
    yield from _metrics(one, other, rounding)
    yield from _in_number(one, other)
    yield from _at_the_end(one, other, rounding)


def _metrics(one: Training, other: Training, rounding: Rounding) -> Iterator[Gap]:
    """What schedules are given to decide by, and gradients are clipped by."""
    for kind, field in (("scheduler", "metric"), ("clip", "norm")):
        both = [[event for event in each.of(kind) if event.fields.get(field) is not None] for each in (one, other)]
        alike = kind == "scheduler" or len(both[0]) == len(both[1])
        for number, (mine, theirs) in enumerate(zip(*both, strict=False) if alike else ()):
            before, after = (_numbers(event.fields[field]) for event in (mine, theirs))
            gap = farthest(before, after)
            if gap:
                given = [shown(event.fields[field]) for event in (mine, theirs)]
                who = f"{theirs.fields.get('kind')} gets" if kind == "scheduler" else "clipping finds the norm"
                what = f"{who} {given[1]} in call {number + 1}, in the original {given[0]}"
                scale = max([1e-6, *(abs(value) for value in (*before, *after) if math.isfinite(value))])
                name: Figure = ("metric", number, *([kind] if kind == "clip" else ()))
                difference = Difference(what, theirs.place, mine.place, figure=name)
                yield Gap(name, gap, scale, _SUMMED * rounding.share * scale, difference)


def _exact_gap(name: Figure, difference: Difference) -> Gap:
    return Gap(name, math.inf, 1.0, 0.0, replace(difference, figure=name))


def _figures_gap(
    name: Figure, before: Sequence[float], after: Sequence[float], floor: float, difference: Difference
) -> Iterator[Gap]:
    """Of two tensors in figures; nothing where they are alike."""
    gap = farthest(before[:3], after[:3])
    if gap:
        scale = max(before[0], after[0], 1e-12)
        yield Gap(name, gap, scale if math.isfinite(scale) else 1.0, floor * scale, replace(difference, figure=name))


def farthest(one: Sequence[float], other: Sequence[float]) -> float:
    """The largest distance of two rows of numbers, infinite where only one of two is a number."""
    return max((_distance(a, b) for a, b in zip(one, other, strict=False)), default=0.0)


def _distance(one: float, other: float) -> float:
    if one == other or (math.isnan(one) and math.isnan(other)):
        return 0.0
    gap = abs(one - other)
    return gap if math.isfinite(gap) else math.inf


def _at_the_end(one: Training, other: Training, rounding: Rounding) -> Iterator[Gap]:
    """Tensors of networks that no optimizer has, such as an average of weights, where both came to one end."""
    if one.cut != other.cut or (one.cut and _counts(one) != _counts(other)):
        return
    stepped = {name for each in (one, other) for made in each.optimizers.values() for name in made.names}
    for name in one.final:
        if name in other.final and name not in stepped:
            difference = Difference(f"{name} differs at the end")
            floor = _SUMMED * rounding.share
            yield from _figures_gap(("end", name), one.final[name], other.final[name], floor, difference)


def _counts(training: Training) -> Counter[int]:
    return Counter(step.optimizer for step in training.steps)


def rounding(training: Training) -> set[str]:
    """The parameters whose gradient is rounding at every step, such as a bias in front of a norm, by the names that
    they have in a state; none whose name there may be that of a parameter that trains."""
    noisy: set[str] = set()
    trains: set[str] = set()
    for step in training.steps:
        total = math.sqrt(sum(each[0] ** 2 for each in step.gradients if each is not None))
        made = training.optimizers.get(step.optimizer)
        for place, each in enumerate(step.gradients if made is not None else ()):
            name = made.name(place).partition(".")[2] if made is not None else ""
            (noisy if each is not None and each[0] <= NOISE * total else trains).add(name)
    return {name for name in noisy if name and not any(f".{each}".endswith(f".{name}") for each in trains)}


def mixed_gaps(
    left: TrainingStep, right: TrainingStep, one: Training, other: Training, rounding: Rounding, *, updated: bool
) -> Iterator[Gap]:
    """As `gaps`, for one pair of steps of which the second is in mixed precision: the losses; before any optimizer has
    `updated` anything the gradients, too."""
    made, remade = one.optimizers.get(left.optimizer), other.optimizers.get(right.optimizer)
    if made is None or remade is None:
        return
    if not updated and not right.skipped:
        yield from _at_a_step(remade, left, replace(right, parameters=[], buffers={}), rounding)
        return
    yield from _at_a_step(remade, left, replace(right, skipped=True), rounding)
    if not left.skipped and not right.skipped:  # a step that is left out reads no learning rate
        yield from _hyper(left, right)


def _in_number(one: Training, other: Training) -> Iterator[Gap]:
    """Steps that only one of them took. Where both were cut, the last of one may be missing."""
    for which in sorted({*one.optimizers, *other.optimizers}):
        left = [step for step in one.steps if step.optimizer == which]
        right = [step for step in other.steps if step.optimizer == which]
        if len(left) == len(right) or (one.cut and other.cut and abs(len(left) - len(right)) <= 1):
            continue
        what = f"optimizer {which} takes {len(right)} steps, in the original {len(left)}"
        fewer = min(len(left), len(right))
        # The first that the other does not take; the last of the other, or the line that made its optimizer.
        here, there = ((*own[fewer:], *own[-1:], side.optimizers.get(which))[0]
                       for own, side in ((right, other), (left, one)))  # fmt: skip
        places = here.place if here else None, there.place if there else None
        yield _exact_gap(("number", which), Difference(what, *places, fewer + 1))


def _at_the_start(made: Optimizer, remade: Optimizer, left: TrainingStep, right: TrainingStep) -> Iterator[Gap]:
    if len(made.start) != len(remade.start):
        what = f"{remade.kind} has {len(remade.start)} parameters, in the original {len(made.start)}"
        yield _exact_gap(("start", left.optimizer), Difference(what, remade.place, made.place, 0))
        return
    for place, (before, after) in enumerate(zip(made.start, remade.start, strict=True)):
        if before is None or after is None or before == after:
            continue
        if not farthest(before[:3], after[:3]) <= 1e-5 * max(before[0], after[0], 1e-12):
            what = f"{remade.name(place)} starts with other values than in the original"
            yield _exact_gap(("start", left.optimizer, place), Difference(what, right.place, left.place, 0))


def _at_a_step(remade: Optimizer, left: TrainingStep, right: TrainingStep, rounding: Rounding) -> Iterator[Gap]:
    step = left.number + 1
    which = (left.optimizer, left.number)
    yield from _losses_gaps(left, right, rounding)
    if left.skipped or right.skipped:
        return
    total = math.sqrt(sum(each[0] ** 2 for each in left.gradients if each is not None))
    quiet: set[int] = set()
    for place, (before, after) in enumerate(zip(left.gradients, right.gradients, strict=False)):
        name = remade.name(place)
        if (before is None) != (after is None):
            here, there = ("no", "one") if after is None else ("a", "none")
            what = f"{name} has {here} gradient at step {step}, in the original {there}"
            yield _exact_gap(("gradient", *which, place), Difference(what, right.place, left.place, step))
        if before is None or after is None:
            continue
        if before[0] <= NOISE * total and after[0] <= NOISE * total:
            quiet.add(place)
            continue
        gap = farthest(before[:2], after[:2])
        if gap:
            what = (
                f"the gradient of {name} at step {step} has the norm {figure(after[0])}, "
                f"in the original {figure(before[0])}"
                if abs(after[0] - before[0]) > 1e-6 * before[0]
                else f"the gradient of {name} at step {step} differs from the original, with the same norm"
            )
            difference = Difference(what, right.place, left.place, step)
            yield gradient_gap(("gradient", *which, place), gap, max(before[0], after[0]), total, rounding, difference)
    yield from _hyper(left, right)
    for place, (held, other) in enumerate(zip(left.parameters, right.parameters, strict=False)):
        if held is not None and other is not None and place not in quiet:
            dtype = remade.dtypes[place] if place < len(remade.dtypes) else "float32"
            floor = rounding.share * ROUNDING.get(dtype, ROUNDING["float32"]) / ROUNDING["float32"]
            difference = Difference(f"{remade.name(place)} differs after step {step}", right.place, left.place, step)
            yield from _figures_gap(("parameter", *which, place), held, other, floor, difference)
    for name in left.buffers.keys() & right.buffers.keys():
        difference = Difference(f"the buffer {name} differs after step {step}", right.place, left.place, step)
        both = left.buffers[name], right.buffers[name]
        yield from _figures_gap(("buffer", *which, name), *both, _SUMMED * rounding.share, difference)


def _losses_gaps(left: TrainingStep, right: TrainingStep, rounding: Rounding) -> Iterator[Gap]:
    """Of the losses of a step, where both have as many. One that is far from the other, with the same gradients, is a
    sum that is divided afterwards."""
    pairs = [*zip(left.losses, right.losses, strict=False)] if len(left.losses) == len(right.losses) else []
    for place, (mine, theirs) in enumerate(pairs):
        both = [*_numbers(mine.value)[:1], *_numbers(theirs.value)[:1]]
        if len(both) < 2 or math.isclose(*both, rel_tol=0.05) or not _same_gradients(left, right, rounding):
            name = ("loss", left.optimizer, left.number, place)
            yield from loss_gap(name, mine, theirs, left.number + 1, rounding)


def _same_gradients(left: TrainingStep, right: TrainingStep, rounding: Rounding) -> bool:
    """Whether another loss has the same effect."""
    both = [*zip(left.gradients, right.gradients, strict=False)]
    given = [(mine, theirs) for mine, theirs in both if mine is not None and theirs is not None and mine[0] > 0]
    total = math.sqrt(sum(mine[0] ** 2 for mine, _ in given))
    apart = (farthest(mine[:3], theirs[:3]) for mine, theirs in given)
    known = left.gradients and not (left.skipped or right.skipped) and len(left.clipped) == len(right.clipped)
    near = _SUMMED * rounding.share
    sizes = zip(left.clipped, right.clipped, strict=False)  # behind the clipping gradients show no more
    known = known and all(None not in each and math.isclose(*each, rel_tol=near) for each in sizes)
    return bool(given and known) and max(apart) <= near * total


def loss_gap(name: Figure, mine: Loss, theirs: Loss, step: int, rounding: Rounding) -> Iterator[Gap]:
    """Of two losses; nothing where they are alike."""
    one, other = _numbers(mine.value), _numbers(theirs.value)
    gap = farthest(one, other)
    if gap:
        sizes = [abs(value) for value in (*one, *other) if math.isfinite(value)]
        scale = max([1e-6, *sizes])
        what = f"the loss of step {step} is {shown(theirs.value)}, in the original {shown(mine.value)}"
        difference = Difference(what, theirs.place, mine.place, step)
        yield Gap(name, gap, scale, _SUMMED * rounding.share * scale, difference)


def gradient_gap(
    name: Figure, gap: float, norm: float, total: float, rounding: Rounding, difference: Difference
) -> Gap:
    """Of two gradients; `total` is the norm of all gradients of the step. A small one, such as that in front of a norm,
    is a sum of large numbers that cancel: what is rounded away of these is left in it. Half precision turns round the
    sign of what is near 0, which a ReLU lets through or not."""
    scale = norm if math.isfinite(norm) else 1.0
    roundings = _TURNED if rounding.share >= ROUNDING["float16"] else _SUMMED
    return Gap(name, gap, scale, roundings * rounding.share * max(scale, total), replace(difference, figure=name))


def _numbers(value: Any) -> list[float]:
    return list(value) if isinstance(value, list) else [value] if isinstance(value, (int, float)) else []


def _hyper(left: TrainingStep, right: TrainingStep) -> Iterator[Gap]:
    """Of each parameter, whatever group it is in; of the groups, where the two have not as many parameters (shards)."""
    both = [
        [group for group, size in zip(step.hyper, step.sizes, strict=False) for _ in range(size)]
        for step in (left, right)
    ]
    both = both if len(both[0]) == len(both[1]) > 0 else [left.hyper, right.hyper]
    for mine, theirs in zip(*both, strict=False):
        for key in mine.keys() & theirs.keys():
            if not alike(mine[key], theirs[key]):
                step, is_there = left.number + 1, _SPOKEN.get(key, f"{key} is")
                what = f"{is_there} {shown(theirs[key])} at step {step}, in the original {shown(mine[key])}"
                difference = Difference(what, right.place, left.place, step)
                yield _exact_gap((SETTING, left.optimizer, left.number, key), difference)


def alike(one: Any, other: Any) -> bool:
    """Whether two numbers of an optimizer, or metrics, are the same but for their rounding."""
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-12) or (math.isnan(one) and math.isnan(other))
    return bool(one == other)


def shown(value: Any) -> str:
    """A number as in a sentence; what is none as it is."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return figure(value) if number else str(value)


def curves(one: Training, other: Training) -> list[Curve]:
    """For each optimizer its pairs of steps: both losses, and the distance of the parameters as a share of their norm;
    None where a step has no scalar loss, or was left out by a scaler."""
    found: dict[int, Curve] = {}
    for left, right in pairs(one, other):
        gaps = norms = 0.0
        for before, after in zip(left.parameters, right.parameters, strict=False):
            if before is not None and after is not None:
                gaps += (before[1] - after[1]) ** 2 + (before[2] - after[2]) ** 2
                norms += before[0] ** 2
        distance = math.sqrt(gaps / 2 / norms) if norms and math.isfinite(gaps) else math.nan if gaps else 0.0
        recorded = bool(left.parameters and right.parameters)
        which = left.optimizer
        made = other.optimizers.get(which) or one.optimizers.get(which)
        title = f"optimizer {which}{f' ({made.title})' if made is not None else ''}"
        row = (_scalar(left), _scalar(right), distance if recorded else None)
        found.setdefault(which, Curve(title, [])).rows.append(row)
    return [found[which] for which in sorted(found)]


def _scalar(step: TrainingStep) -> float | None:
    values = [loss.value for loss in step.losses if isinstance(loss.value, (int, float))]
    return float(values[-1]) if values else None
