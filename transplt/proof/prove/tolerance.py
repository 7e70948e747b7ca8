"""How far two figures may be apart and still count as equal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from transplt.proof.prove.training import Figures
from transplt.render.cell import figure

#: The rounding of one operation, relative to a tensor's norm (IEEE 754; bfloat16 has 8 bits of mantissa).
ROUNDING = {"float64": 2.3e-16, "float32": 1.2e-7, "float16": 9.8e-4, "bfloat16": 7.9e-3}


@dataclass(frozen=True)
class Tolerance:
    """Relative bounds. `loss` and `gradient` hold for values, `movement` for how a parameter moved since the start;
    `roundings` is how many roundings of its dtype a parameter itself may be off; gradients below `floor`, as a share of
    the norm of all of a step, are measured by that share."""

    loss: float
    gradient: float
    movement: float
    roundings: float
    floor: float = 1e-3

    def __str__(self) -> str:
        return (
            f"losses within {figure(self.loss)}, gradients within {figure(self.gradient)} of their norm, parameters "
            f"within {figure(self.movement)} of the way they moved"
        )

    def narrowed(self, times: float) -> Tolerance:
        """Bounds that are so many times as narrow."""
        loss, gradient, movement = (bound / times for bound in (self.loss, self.gradient, self.movement))
        return replace(self, loss=loss, gradient=gradient, movement=movement, roundings=self.roundings / times)

    def loss_apart(self, one: Any, other: Any) -> float:
        """The relative difference where it is beyond the bound, else 0."""
        pairs = zip(_listed(one), _listed(other), strict=False)
        worst = max((_relative(a, b) for a, b in pairs), default=0.0)
        return worst if not worst <= self.loss else 0.0

    def gradient_apart(self, one: Sequence[float], other: Sequence[float], total: float) -> float:
        """As `loss_apart`, for [norm, projection, ...]; `total` is the norm of all gradients of the step."""
        reference = max(one[0], other[0], self.floor * total)
        gap = max(abs(one[0] - other[0]), abs(one[1] - other[1]))
        worst = _share(gap, reference, one[:2], other[:2])
        return worst if not worst <= self.gradient else 0.0

    def parameter_apart(self, one: Figures, other: Figures, start: Figures, dtype: str) -> float:
        """The difference as a share of the movement, where it is beyond the bound, else 0."""
        if one is None or other is None or one == other:
            return 0.0
        gap = max(abs(a - b) for a, b in zip(one[:3], other[:3], strict=True))
        moved = max(_moved(one, start), _moved(other, start))
        allowed = self.movement * moved + self.roundings * ROUNDING.get(dtype, 1.2e-7) * max(one[0], other[0])
        if math.isfinite(gap) and gap <= allowed:
            return 0.0
        return _share(gap, moved, one[:3], other[:3]) or 1e-9


#: The emulated card computes with the host's arithmetic, so a plain port is nearly the original to the bit.
PLAIN = Tolerance(1e-5, 1e-4, 1e-3, 4)
#: The sums of W processes are added in another order.
REORDERED = Tolerance(1e-4, 2e-3, 2e-2, 32)


def _listed(value: Any) -> list[float]:
    return list(value) if isinstance(value, list) else [value] if isinstance(value, (int, float)) else []


def _relative(one: float, other: float) -> float:
    if one == other or (math.isnan(one) and math.isnan(other)):
        return 0.0
    return _share(abs(one - other), max(abs(one), abs(other), 1e-6), [one], [other])


def _share(gap: float, reference: float, one: Sequence[float], other: Sequence[float]) -> float:
    if not math.isfinite(gap):
        same = all(a == b or (math.isnan(a) and math.isnan(b)) for a, b in zip(one, other, strict=True))
        return 0.0 if same else math.inf
    return gap / reference if reference > 0 else (math.inf if gap else 0.0)


def _moved(now: Sequence[float], start: Figures) -> float:
    if start is None:
        return 0.0
    return max(abs(a - b) for a, b in zip(now[:3], start[:3], strict=True))
