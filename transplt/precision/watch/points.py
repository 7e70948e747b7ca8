"""The sixteen watch points of the guide on tuning models (MindInsight's debugger), by their names, and three of data.

The guide names them and gives no bounds: the bounds here are this program's, and `--bound NAME=VALUE` sets others.
Those of too large and too small tensors are where float16 ends (65504, and 2**-24 as the smallest number above 0).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from transplt.base.errors import UsageError
from transplt.precision.distance import FLOAT16_MAX


@dataclass(frozen=True, slots=True)
class Point:
    """One watch point. `guide` is its name there; `recommended` those that are looked for unless others are named."""

    name: str
    guide: str
    meaning: str
    bound: float | None = None
    recommended: bool = False


POINTS = (
    Point("operator-overflow", "检查计算过程溢出",
          "an operator with finite inputs has an output that is not finite, or at the end of float16", None, True),
    Point("overflow", "检查张量溢出", "a tensor is not finite, or at the end of float16", None, True),
    Point("all-zero", "检查张量是否全为0", "all elements of an operator's output are 0", None, True),
    Point("tensor-range", "检查张量值范围", "an output has elements outside --range", None),
    Point("tensor-too-large", "检查过大张量", "the largest |element| of an output is above the bound", FLOAT16_MAX),
    Point("tensor-too-small", "检查过小张量", "the largest |element| of an output is below the bound", 2.0**-24),
    Point("weight-overflow", "检查权重溢出", "a weight is not finite, or at the end of float16", None, True),
    Point("weight-too-large", "检查过大权重", "the largest |element| of a weight is above the bound", 1e3),
    Point("weight-too-small", "检查过小权重", "the largest |element| of a weight is below the bound", 2.0**-24),
    Point("unchanged-weight", "检查未变化权重", "a weight has the same figures as in the step before", None, True),
    Point("weight-change-too-large", "检查权重变化过大",
          "a weight changes from one step to the next by more than the bound, as a share of it", 0.5, True),
    Point("weight-change-too-small", "检查权重变化过小",
          "a weight changes from one step to the next by less than the bound, as a share of it", 1e-6),
    Point("gradient-exploding", "检查梯度爆炸",
          "a gradient is not finite, or its norm is that many times the one of the step before", 100.0, True),
    Point("gradient-vanishing", "检查梯度消失", "the norm of a gradient is below the bound", 1e-9, True),
    Point("gradient-too-large", "检查梯度过大", "the norm of a gradient is above the bound", 1e3),
    Point("activation-range", "检查激活值范围",
          "an activation has elements outside its range, or all of them at one end of it", None, True),
    Point("label-range", "检查标签范围", "a label is not a class of its loss", None, True),
    Point("constant-data", "检查恒定数据", "all elements of the model's data are one number", None, True),
    Point("repeated-data", "检查重复数据", "the model's data has the same figures as in the step before", None),
)  # fmt: skip
BY_NAME = {point.name: point for point in POINTS}
RECOMMENDED, ALL = "recommended", "all"


def chosen(text: str) -> tuple[Point, ...]:
    """The watch points that `--checks` names, in the order of the table. UsageError for a name that is none."""
    names = {name.strip() for name in text.split(",") if name.strip()}
    for name in names - {RECOMMENDED, ALL}:
        if name not in BY_NAME:
            raise UsageError(f"there is no watch point {name!r}; there are {', '.join(BY_NAME)}, {RECOMMENDED}, {ALL}")
    if not names:
        raise UsageError(f"--checks names no watch point; there are {', '.join(BY_NAME)}, {RECOMMENDED}, {ALL}")
    return tuple(
        point for point in POINTS if ALL in names or point.name in names or (RECOMMENDED in names and point.recommended)
    )


def bounds(given: Sequence[str]) -> dict[str, float]:
    """The bound of each watch point that has one, those of `--bound NAME=VALUE` in place of the default."""
    found = {point.name: point.bound for point in POINTS if point.bound is not None}
    for text in given:
        name, _, value = text.partition("=")
        if name not in found:
            raise UsageError(f"--bound {text!r}: NAME=VALUE with one of {', '.join(found)}")
        try:
            found[name] = float(value)
        except ValueError:
            raise UsageError(f"--bound {text!r}: {value!r} is not a number") from None
    return found
