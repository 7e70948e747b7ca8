"""Holds one training against another, step by step: the first figure that differs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from transplt.proof.prove.found import Curve, Difference
from transplt.proof.prove.tolerance import Tolerance
from transplt.proof.prove.training import Optimizer, Training, TrainingStep
from transplt.render.cell import figure

#: A gradient below this share of all gradients is rounding; what an optimizer makes of its sign means nothing.
_NOISE = 1e-6
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


def in_common(one: Training, other: Training) -> tuple[Training, Training]:
    """Both up to the last step that both took: one of the two stopped behind it."""
    taken = [*pairs(one, other)]
    last = [max((pair[side].index for pair in taken), default=-1) for side in (0, 1)]
    return one.until(last[0]), other.until(last[1])


def first_difference(one: Training, other: Training, tolerance: Tolerance) -> Difference | None:
    """The first step at which the two differ, and in what; None where every figure agrees."""
    return next(differences(one, other, tolerance), None)


def differences(one: Training, other: Training, tolerance: Tolerance) -> Iterator[Difference]:
    """Every figure that differs, step by step."""
    begun: set[int] = set()
    for left, right in pairs(one, other):
        made, remade = one.optimizers.get(left.optimizer), other.optimizers.get(right.optimizer)
        if made is None or remade is None:
            continue
        if left.optimizer not in begun:
            begun.add(left.optimizer)
            yield from _at_the_start(made, remade, left, right)
        yield from _at_a_step(made, remade, left, right, tolerance)
    for found in (_in_number(one, other), _at_the_end(one, other, tolerance)):
        if found is not None:
            yield found


def _at_the_end(one: Training, other: Training, tolerance: Tolerance) -> Difference | None:
    """Tensors of networks that no optimizer has, such as an average of weights, where both came to one end."""
    if one.cut != other.cut or (one.cut and _counts(one) != _counts(other)):
        return None
    stepped = {name for each in (one, other) for made in each.optimizers.values() for name in made.names}
    for name in one.final.keys() & other.final.keys() - stepped:
        before, after = one.final[name], other.final[name]
        gap = max(abs(a - b) for a, b in zip(before[:3], after[:3], strict=True))
        if not gap <= max(1e-4, tolerance.movement) * max(before[0], after[0], 1e-6):
            return Difference(f"{name} differs at the end", figure=("end", name))
    return None


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
            (noisy if each is not None and each[0] <= _NOISE * total else trains).add(name)
    return {name for name in noisy if name and not any(f".{each}".endswith(f".{name}") for each in trains)}


def mixed_differences(
    left: TrainingStep, right: TrainingStep, one: Training, other: Training, tolerance: Tolerance, *, updated: bool
) -> Iterator[Difference]:
    """As `differences`, for one pair of steps of which the second is in mixed precision: the losses; before any
    optimizer has `updated` anything the gradients, too."""
    made, remade = one.optimizers.get(left.optimizer), other.optimizers.get(right.optimizer)
    if made is None or remade is None:
        return
    if not updated and not right.skipped:
        plain = replace(right, parameters=[], buffers={})
        yield from _at_a_step(made, remade, left, plain, tolerance)
        return
    yield from _at_a_step(made, remade, left, replace(right, skipped=True), tolerance)
    yield from _hyper(left, right)


def _in_number(one: Training, other: Training) -> Difference | None:
    """Steps that only one of them took. Where both were cut, the last of one may be missing."""
    for which in sorted({*one.optimizers, *other.optimizers}):
        left = [step for step in one.steps if step.optimizer == which]
        right = [step for step in other.steps if step.optimizer == which]
        if len(left) == len(right) or (one.cut and other.cut and abs(len(left) - len(right)) <= 1):
            continue
        made = other.optimizers.get(which)
        what = f"optimizer {which} takes {len(right)} steps, in the original {len(left)}"
        origin = one.optimizers.get(which)
        return Difference(
            what, made.place if made else None, origin.place if origin else None, min(len(left), len(right)) + 1,
            figure=("number", which),
        )  # fmt: skip
    return None


def _at_the_start(made: Optimizer, remade: Optimizer, left: TrainingStep, right: TrainingStep) -> Iterator[Difference]:
    figure_of = ("start", left.optimizer)
    if len(made.start) != len(remade.start):
        what = f"{remade.kind} has {len(remade.start)} parameters, in the original {len(made.start)}"
        yield Difference(what, remade.place, made.place, 0, figure=figure_of)
        return
    for place, (before, after) in enumerate(zip(made.start, remade.start, strict=True)):
        if before is None or after is None or before == after:
            continue
        gap = max(abs(a - b) for a, b in zip(before[:3], after[:3], strict=True))
        if not gap <= 1e-5 * max(before[0], after[0], 1e-12):
            what = f"{remade.name(place)} begins with other values than in the original"
            yield Difference(what, right.place, left.place, 0, figure=(*figure_of, place))


def _at_a_step(
    made: Optimizer, remade: Optimizer, left: TrainingStep, right: TrainingStep, tolerance: Tolerance
) -> Iterator[Difference]:
    step = left.number + 1
    which = (left.optimizer, left.number)
    if len(left.losses) == len(right.losses):
        for place, (mine, theirs) in enumerate(zip(left.losses, right.losses, strict=True)):
            apart = tolerance.loss_apart(mine.value, theirs.value)
            if apart:
                what = f"the loss of step {step} is {_shown(theirs.value)}, in the original {_shown(mine.value)}"
                yield Difference(what, theirs.place, mine.place, step, figure=("loss", *which, place), apart=apart)
    if left.skipped or right.skipped:
        return
    total = math.sqrt(sum(each[0] ** 2 for each in left.gradients if each is not None))
    quiet: set[int] = set()
    for place, (before, after) in enumerate(zip(left.gradients, right.gradients, strict=False)):
        name = remade.name(place)
        measured = ("gradient", *which, place)
        if (before is None) != (after is None):
            here, there = ("no", "one") if after is None else ("a", "none")
            what = f"{name} has {here} gradient at step {step}, in the original {there}"
            yield Difference(what, right.place, left.place, step, figure=measured)
        if before is None or after is None:
            continue
        if before[0] <= _NOISE * total and after[0] <= _NOISE * total:
            quiet.add(place)
            continue
        apart = tolerance.gradient_apart(before, after, total)
        if apart:
            what = (
                f"the gradient of {name} at step {step} has the norm {figure(after[0])}, "
                f"in the original {figure(before[0])}"
                if abs(after[0] - before[0]) > 1e-6 * before[0]
                else f"the gradient of {name} at step {step} is another one than in the original, with an equal norm"
            )
            yield Difference(what, right.place, left.place, step, figure=measured, apart=apart)
    yield from _hyper(left, right)
    for place, (before, after) in enumerate(zip(left.parameters, right.parameters, strict=False)):
        start = made.start[place] if place < len(made.start) else None
        dtype = remade.dtypes[place] if place < len(remade.dtypes) else "float32"
        apart = 0.0 if place in quiet else tolerance.parameter_apart(before, after, start, dtype)
        if apart:
            what = f"{remade.name(place)} differs after step {step}"
            yield Difference(what, right.place, left.place, step, figure=("parameter", *which, place), apart=apart)
    for name in left.buffers.keys() & right.buffers.keys():
        before, after = left.buffers[name], right.buffers[name]
        gap = max(abs(a - b) for a, b in zip(before[:3], after[:3], strict=True))
        reference = max(before[0], after[0], 1e-6)
        if not gap <= max(1e-4, tolerance.movement) * reference:
            what = f"the buffer {name} differs after step {step}"
            shown = ("buffer", *which, name)
            yield Difference(what, right.place, left.place, step, figure=shown, apart=gap / reference)


def _hyper(left: TrainingStep, right: TrainingStep) -> Iterator[Difference]:
    for mine, theirs in zip(left.hyper, right.hyper, strict=False):
        for key in mine.keys() & theirs.keys():
            if not _alike(mine[key], theirs[key]):
                step, is_there = left.number + 1, _SPOKEN.get(key, f"{key} is")
                what = f"{is_there} {_shown(theirs[key])} at step {step}, in the original {_shown(mine[key])}"
                measured = (SETTING, left.optimizer, left.number, key)
                yield Difference(what, right.place, left.place, step, figure=measured)


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-12)
    return bool(one == other)


def _shown(value: Any) -> str:
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
