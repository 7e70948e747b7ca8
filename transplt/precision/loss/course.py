"""What the course of a curve suggests; the bounds are this program's choice, as no source has any."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean

from transplt.base.render.cell import figure
from transplt.precision.loss.curve import Curve, normal
from transplt.precision.loss.line import is_aside

_PARTS, _FEWEST = 5, 20
#: A training's loss rises when its last fifth is so many times its lowest; a validation's when its end is.
_RISES, _VALIDATION_RISES = 1.5, 1.05


def rises(values: Iterable[float]) -> bool:
    """True for a loss whose last fifth lies well above an earlier one."""
    means = _fifths([value for value in values if math.isfinite(value)])
    return bool(means) and 0 < _RISES * min(means) < means[-1]


def overfits(named: Iterable[Curve], training: Curve) -> str:
    """A sentence on a validation loss that has risen from its lowest value while the training's went on falling."""
    means = _fifths(training.values)
    if not means or is_aside(normal(training.name)) or means[-1] > min(means):
        return ""
    for curve in named:
        key = normal(curve.name)
        low, end = min(curve.values, default=0.0), curve.values[-max(2, len(curve.values) // _PARTS) :]
        has_risen = all(value > _VALIDATION_RISES * low > 0 for value in end)
        if is_aside(key) and "loss" in key and len(curve) >= _PARTS and has_risen:
            ends = f"from {figure(low)} at value {curve.values.index(low) + 1} to {figure(curve.values[-1])} at the end"
            return f"`{curve.name}` rises {ends} while `{training.name}` falls: the model overfits from there on"
    return ""


def _fifths(values: Sequence[float]) -> list[float]:
    """The means of five parts; none of a curve that is too short to have a course."""
    if len(values) < _FEWEST:
        return []
    ends = [len(values) * part // _PARTS for part in range(_PARTS + 1)]
    return [fmean(values[ends[part] : ends[part + 1]]) for part in range(_PARTS)]
