"""How far a figure of one program may be from that of another: as far as the program's own roundings move it.

The original is run again with its parameters off by roundings, at random and after every step. What that moves a
figure by, some times over, is its tolerance: per tensor and step, as TTrace derives them (arXiv 2506.09280).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from statistics import median

from transplt.base.render.cell import figure, many
from transplt.proof.prove.found import Difference, Rounding, Width
from transplt.proof.prove.training import Training

#: What names a figure: its kind, then the number of the optimizer, of the step (from 0), and the place.
Figure = tuple[str | int, ...]
#: The rounding of one operation, relative to a tensor's norm (IEEE 754; bfloat16 has 8 bits of mantissa).
ROUNDING = {"float64": 2.3e-16, "float32": 1.2e-7, "float16": 9.8e-4, "bfloat16": 7.9e-3}
#: A figure may be so many times as far away as roundings moved it: another draw of them would have moved it by more.
TIMES = 8.0
#: Where roundings move a figure by more than this share of it, they decide it, and it says nothing.
_DECIDED = {"loss": 0.1, "gradient": 0.5, "parameter": 0.1, "buffer": 0.1, "metric": 0.1, "end": 0.1}
#: The kinds of figures that roundings move, in the order of the fields of `Width`, and what a report calls them.
_KINDS = {
    "loss": "losses", "gradient": "gradients", "parameter": "parameters", "buffer": "buffers",
    "metric": "metrics of schedules", "end": "tensors at the end",
}  # fmt: skip
#: The figures of which each step has many: what moves half of them is no accident of one.
_MANY = ("gradient", "parameter")


#: The emulated card computes with the host's arithmetic; a fused optimizer computes its formula in another order.
PLAIN = Rounding(4 * 2.0**-23)
#: The sums of W processes are added in another order.
REORDERED = Rounding(32 * 2.0**-23)


@dataclass(frozen=True)
class Gap:
    """A figure that two trainings do not have to the bit in common: how far they are apart (infinite: in a way that no
    rounding brings about), what that is measured by, how much of it is rounding anyway, and how it is told."""

    figure: Figure
    gap: float
    scale: float
    floor: float
    difference: Difference

    @property
    def share(self) -> float:
        return self.gap / self.scale if self.scale > 0 else math.inf if self.gap else 0.0


#: The gaps between two trainings, step by step.
Compare = Callable[[Training, Training, Rounding], Iterator[Gap]]


@dataclass(frozen=True)
class Tolerance:
    """The bounds of a comparison. Without shaken runs they are a few roundings."""

    rounding: Rounding
    #: (kind, optimizer, place) -> steps, and by how much of itself the figure had moved up to each of them.
    _moved: dict[Figure, tuple[list[int], list[float]]] = field(default_factory=dict)
    #: (kind, optimizer, step) -> what half of its figures moved by.
    _half: dict[Figure, float] = field(default_factory=dict)

    @classmethod
    def of(cls, rounding: Rounding, one: Training, shaken: Iterable[Training], compare: Compare) -> Tolerance:
        """What roundings make of a program's training, which was shaken again and again."""
        most: dict[Figure, float] = defaultdict(float)
        for each in shaken:
            for gap in compare(one, each, rounding):
                if math.isfinite(gap.share):
                    most[gap.figure] = max(most[gap.figure], gap.share)
        series: dict[Figure, dict[int, float]] = defaultdict(dict)
        together: dict[Figure, list[float]] = defaultdict(list)
        for name, share in most.items():
            line, step = _line(name)
            series[line][step] = share
            together[name[:3]].append(share)
        by_step = {line: sorted(steps.items()) for line, steps in series.items()}
        moved = {
            line: ([step for step, _ in steps], [*accumulate((share for _, share in steps), max)])
            for line, steps in by_step.items()
        }
        return cls(rounding, moved, {name: median(shares) for name, shares in together.items() if name[0] in _MANY})

    def bound(self, gap: Gap) -> float:
        """How far the figure may be apart, as a share of its scale."""
        line, step = _line(gap.figure)
        numbers, so_far = self._moved.get(line, ([], []))
        at = bisect_right(numbers, step)
        own = so_far[at - 1] if at else 0.0
        return TIMES * max(own, self._half.get(gap.figure[:3], 0.0)) + (gap.floor / gap.scale if gap.scale else 0.0)

    def widths(self, gaps: Sequence[Gap]) -> list[Width]:
        """The bounds that figures with a gap were held to, by step; behind them those of figures of no step."""
        found = []
        for gap in gaps:
            kind, *numbers = gap.figure
            if kind in _KINDS and math.isfinite(gap.gap):
                of_a_step = len(numbers) > 1 and isinstance(numbers[1], int)
                at = (int(numbers[0]), int(numbers[1])) if of_a_step else (None, None)
                found.append(Width(*at, *(self.bound(gap) if each == kind else None for each in _KINDS)))
        return widest(found)


def widest(widths: Iterable[Width]) -> list[Width]:
    """The widest bounds of each kind, by step, of several comparisons."""
    found: dict[tuple[int | None, int | None], dict[str, float]] = defaultdict(dict)
    for width in widths:
        here = found[width.optimizer, width.step]
        for kind in _KINDS:
            if (value := getattr(width, kind)) is not None:
                here[kind] = max(here.get(kind, 0.0), value)
    order = sorted(found, key=lambda at: (at[1] is None, at[1] or 0, at[0] or 0))
    return [Width(*at, *(found[at].get(kind) for kind in _KINDS)) for at in order]


def _line(name: Figure) -> tuple[Figure, int]:
    """The figure that a step has at the same place as other steps have it, and the step."""
    if len(name) < 3 or not isinstance(name[2], int):
        return name, 0
    return (*name[:2], *name[3:]), name[2]


@dataclass(frozen=True)
class Held:
    """Two trainings held against each other: the first difference that is more than rounding, the figures that
    roundings decide, and the bounds."""

    first: Difference | None = None
    decided: tuple[Gap, ...] = ()
    widths: tuple[Width, ...] = ()


def hold(
    one: Training, other: Training, rounding: Rounding, compare: Compare, shaken: Callable[[], Iterable[Training]]
) -> Held:
    """Hold `other` against `one`. `shaken` gives trainings of the program of `one`, with its parameters off by
    roundings; it is not called where the two are equal to the bit, or begin with what no rounding brings about."""
    gaps = list(compare(one, other, rounding))
    if not gaps or not math.isfinite(gaps[0].gap):
        return Held(gaps[0].difference if gaps else None)
    tolerance = Tolerance.of(rounding, one, shaken(), compare)
    first = next((gap for gap in gaps if not gap.share <= tolerance.bound(gap)), None)
    before = gaps[: gaps.index(first)] if first is not None else gaps
    decided = {gap.figure: gap for gap in before if tolerance.bound(gap) > _DECIDED.get(str(gap.figure[0]), math.inf)}
    widths = tolerance.widths([gap for gap in before if gap.figure not in decided])
    return Held(first.difference if first is not None else None, tuple(decided.values()), tuple(widths))


def in_words(widths: Sequence[Width]) -> str:
    parts = []
    for kind, noun in _KINDS.items():
        if values := [value for each in widths if (value := getattr(each, kind)) is not None]:
            low, high = figure(min(values)), figure(max(values))
            parts.append(f"{noun} {low if low == high else f'{low} to {high}'}")
    if not parts:
        return "none was needed: the results are bit-identical"
    return f"relative: {', '.join(parts)}; {TIMES:g} times what rounding errors change"


def compared_whole(decided: Sequence[Gap], steps: int) -> tuple[int, str]:
    """How many steps were compared whole, of so many; and in one clause which figures were not."""
    first = min(gap.difference.step or 0 for gap in decided)
    losses = [gap.difference.step or 0 for gap in decided if gap.figure[0] == "loss"]
    whole = min([steps, *(step - 1 for step in losses)])
    return whole, f"{many(len(decided), 'figure')} from step {first} on not compared: rounding errors decide them"
