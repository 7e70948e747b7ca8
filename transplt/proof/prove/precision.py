"""Judges mixed precision against float32: left-out steps, the scale, gradients that underflow, the losses."""

from __future__ import annotations

import math
from collections.abc import Iterator

from transplt.base.grouped import grouped
from transplt.base.render.cell import figure
from transplt.proof.prove.found import Difference, Rounding
from transplt.proof.prove.steps import gaps as plain_gaps
from transplt.proof.prove.steps import mixed_gaps, pairs
from transplt.proof.prove.tolerance import ROUNDING, Compare, Gap
from transplt.proof.prove.training import Event, Training

#: A scale of 65,536 is halved a few times until it fits; more than this share of all steps is no start any more.
SKIPPED, AT_THE_START = 0.2, 3
#: The share of a gradient's elements that may become zero in half precision.
UNDERFLOW = 0.25
_HALF = ("float16", "bfloat16")


def rounding_between(one: Training, other: Training, exact: Rounding) -> Rounding:
    """The roundings in which two trainings may differ: `exact` where both are in float32 and wider, else those of the
    coarser of the two."""
    mixed = [each for each in (one, other) if is_mixed(each)]
    dtypes = {event.fields["dtype"] for each in mixed for event in each.of("autocast")}
    dtypes = dtypes.union(*map(_trained_types, mixed))
    return Rounding(ROUNDING["bfloat16" if "bfloat16" in dtypes else "float16"]) if mixed else exact


def is_mixed(training: Training) -> bool:
    """Whether anything of the training asks for half precision."""
    asked = {each.fields.get("dtype") for each in training.of("autocast", "scale") if each.fields.get("enabled", True)}
    if asked - {"float32"}:
        return True
    dtypes = {dtype for made in training.optimizers.values() for dtype in made.dtypes}
    return bool(dtypes & {*_HALF}) or any(loss.dtype in _HALF for step in training.steps for loss in step.losses)


def _trained_types(training: Training) -> set[str]:
    """The types of what optimizers update and of the weights that networks compute with: copies of each other."""
    return {dtype for made in training.optimizers.values() for dtype in (*made.dtypes, *made.weights)}


def is_put_in(one: Training, other: Training) -> bool:
    """Whether only the second of two trainings is in mixed precision: a port put it in."""
    return is_mixed(other) and not is_mixed(one)


def comparison(put_in: bool) -> Compare:
    """What holds two trainings against each other, where mixed precision is `put_in`, and where it is not."""
    return gaps if put_in else plain_gaps


def precision_faults(one: Training, other: Training) -> Iterator[Difference]:
    """What is wrong with the mixed precision of `other`, whose counterpart `one` is in float32."""
    yield from _cast(one, other)
    yield from _half_loss(one, other)
    yield from _order(other)
    yield from _skips(other)
    if _scales_float32(other) and not _scales_float32(one):
        what = "the loss is scaled but nothing runs in half precision: autocast is missing"
        yield Difference(what, other.of("scale")[0].place, event=True)
    if one.of("scale"):
        return
    lost: dict[str, list[float]] = {}
    for left, right in pairs(one, other):
        names = other.optimizers[right.optimizer].names
        for place, (before, after) in enumerate(zip(left.gradients, right.gradients, strict=False)):
            if before is not None and after is not None and place < len(names) and math.isfinite(after[0]):
                lost.setdefault(names[place], []).append(after[2] - before[2])
    for name, shares in lost.items():
        middle = sorted(shares)[len(shares) // 2]
        if middle > UNDERFLOW:
            yield Difference(f"{middle:.0%} more of the gradient of {name} is zero than in float32: it underflows")


def _scales_float32(training: Training) -> bool:
    scaled, cast = (any(event.fields["enabled"] for event in training.of(kind)) for kind in ("scale", "autocast"))
    return scaled and not cast and not _trained_types(training) & {*_HALF}


def _cast(one: Training, other: Training) -> Iterator[Difference]:
    """Weights in half precision without autocast or a scaler: nobody asked for mixed precision."""
    if _asks_for_mixed(other):
        return
    for which, made in other.optimizers.items():
        before = one.optimizers.get(which)
        half = next((dtype for dtype in made.dtypes if dtype in _HALF), None)
        if before is not None and half is not None and not {*before.dtypes} & {*_HALF}:
            casts = [event for event in other.of("cast") if event.fields["dtype"] == half]
            what = f"the parameters of optimizer {which} ({made.kind}) are {half}, in the original {before.dtypes[0]}"
            yield Difference(what, casts[0].place if casts else made.place, before.place, 0, event=True)


def _half_loss(one: Training, other: Training) -> Iterator[Difference]:
    """A loss in half precision that is not so in the original, though autocast is on both sides or on none."""
    if is_mixed(one) == _asks_for_mixed(other):
        for left, right in pairs(one, other):
            for mine, theirs in zip(left.losses, right.losses, strict=False):
                if theirs.dtype in _HALF and mine.dtype not in _HALF:
                    what = f"the loss of step {left.number + 1} is {theirs.dtype}, in the original {mine.dtype}"
                    yield Difference(what, theirs.place, mine.place, left.number + 1)
                    return


def _asks_for_mixed(training: Training) -> bool:
    return bool(training.of("scale")) or any(event.fields["enabled"] for event in training.of("autocast"))


def _order(training: Training) -> Iterator[Difference]:
    """The rules of torch.amp: unscale before clipping, one update after the steps."""
    scaled = unscaled = False
    pending = 0
    scale: Event | None = None
    for event in training.events:
        if event.kind == "scale" and event.fields["enabled"]:
            scaled, unscaled = True, False
            scale = event
        elif event.kind == "backward" and scale is not None and not event.fields.get("scaled"):
            if scale.fields.get("loss") and event.fields["loss"] == [scale.fields["loss"]]:
                what = (
                    "the backward pass starts from the unscaled loss, but the step divides the gradients by the scale"
                )
                yield Difference(f"{what}: the result of scaler.scale() is not used", event.place, event=True)
                return
        elif event.kind == "unscale":
            unscaled = True
        elif event.kind == "clip" and scaled and not unscaled:
            what = "gradients are clipped while they are scaled: call unscale_ first"
            yield Difference(what, event.place, event=True)
            return
        elif event.kind in ("step", "skipped") and scaled:
            pending += 1
        elif event.kind == "update":
            pending, scaled = 0, False
        if pending > 4 + len(training.optimizers):
            what = "the scale is never updated after the steps: scaler.update() is missing"
            yield Difference(what, event.place, event=True)
            return


def _skips(training: Training) -> Iterator[Difference]:
    for which, made in training.optimizers.items():
        steps = [step for step in training.steps if step.optimizer == which]
        left_out = [step for step in steps if step.skipped]
        if len(left_out) > max(AT_THE_START, SKIPPED * len(steps)):
            what = f"{len(left_out)} of {len(steps)} steps of optimizer {which} ({made.kind}) are skipped by the scaler"
            makes = training.of("scaler")
            again = makes[-1].place if len(makes) > len(steps) // 2 else None
            why = f"a scaler is created {len(makes)} times, and starts with its initial scale again" if again else ""
            yield Difference(what, again or left_out[-1].place, step=left_out[AT_THE_START].number + 1, cause=why)
    scales = [event.fields["scale"] for event in training.of("update") if event.fields["enabled"]]
    if scales and not scales[-1] >= 1:
        yield Difference(f"the scale has fallen to {figure(scales[-1])}", training.of("update")[-1].place)


def left_out(training: Training) -> dict[int, list[int]]:
    """Optimizer -> its steps that a scaler left out, from 0."""
    return grouped((step.optimizer, step.number) for step in training.steps if step.skipped)


def never_stepped(training: Training) -> Iterator[str]:
    """Why nothing is known of an optimizer of which a scaler left out every step."""
    for which, numbers in left_out(training).items():
        if len(numbers) == sum(step.optimizer == which for step in training.steps):
            kind = training.optimizers[which].kind if which in training.optimizers else "optimizer"
            yield f"the scaler skipped all {len(numbers)} steps of optimizer {which} ({kind}); run more steps"


def gaps(one: Training, other: Training, rounding: Rounding) -> Iterator[Gap]:
    """Losses and the first gradients against float32; behind a step that a scaler left out, losses only."""
    updated = False
    for left, right in pairs(one, other):
        yield from mixed_gaps(left, right, one, other, rounding, updated=updated)
        updated = updated or not right.skipped


def summary(training: Training) -> str:
    steps, left_out = len(training.steps), sum(step.skipped for step in training.steps)
    scales = [event.fields["scale"] for event in training.of("update") if event.fields["enabled"]]
    scale = f", the scale is {figure(scales[-1])} at the end" if scales else ""
    return f"{left_out} of {steps} steps skipped{scale}"
