"""How the parameters of a step are distributed on both sides, for the page: their ends, mean and deviation."""

from __future__ import annotations

import math
from typing import Any

from transplt.base.render.cell import figure, visible
from transplt.precision.match import Matched
from transplt.precision.record import Tensor
from transplt.precision.weights import weights_of

_MOST = 200
_WIDTH, _HEIGHT = 260, 22


def weight_bars(matched: Matched) -> list[dict[str, Any]]:
    """A row for each parameter, both sides on one scale; those that are apart first, and at most some hundred."""
    found = []
    for name, both in weights_of(matched, None).by_name.items():
        ends = [value for tensor in both for value in (tensor.min, tensor.max) if value is not None]
        if len(ends) == 4 and all(map(math.isfinite, ends)):
            low, high = min(ends), max(ends)
            room = (high - low) or 1.0
            sides = [_side(tensor, low, room, number) for number, tensor in enumerate(both)]
            apart = both[0][3:7] != both[1][3:7]
            figures = []
            for tensor in both:
                values = zip(("max", "min", "mean", "norm"), tensor[3:7], strict=True)
                figures.append(", ".join(f"{of} {figure(value, 4)}" for of, value in values if value is not None))
            found.append({"name": visible(name), "shape": str([*both[0].shape]), "sides": sides, "apart": apart,
                          "figures": figures})  # fmt: skip
    found.sort(key=lambda row: not row["apart"])
    return found[:_MOST]


def _side(tensor: Tensor, low: float, room: float, number: int) -> dict[str, Any]:
    """A line from the smallest to the largest element, a box of one deviation around the mean."""

    def x(value: float) -> float:
        return round(_WIDTH * min(max((value - low) / room, 0.0), 1.0), 1)

    assert tensor.min is not None and tensor.max is not None
    y = 2 + number * _HEIGHT // 2
    found: dict[str, Any] = {"y": y, "from": x(tensor.min), "to": x(tensor.max), "box": None}
    if tensor.mean is not None and tensor.norm is not None and tensor.size:
        deviation = math.sqrt(max(tensor.norm**2 / tensor.size - tensor.mean**2, 0.0))
        begin, end = x(tensor.mean - deviation), x(tensor.mean + deviation)
        found["box"] = {"x": begin, "width": max(round(end - begin, 1), 1.0)}
    return found
