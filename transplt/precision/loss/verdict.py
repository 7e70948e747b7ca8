"""Do two curves agree? Mean difference, first divergence, drift, and the first fifth of the training.

Sources of the measures: the porting guide of PyTorch for Ascend calls results equal whose difference is in general not
above 1e-4, and asks to align a fifth of the epochs before the whole training. The share of the loss has no source; 1 %
is what this program takes unless a limit is given.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from transplt.precision.loss.pairing import Pair, Paired

ABSOLUTE, SHARE, FIFTH = 1e-4, 0.01, 0.2
_PARTS = 5
#: A curve that is a constant times the other: the ratios lie within this share of their median.
_STEADY = 1e-3


@dataclass(frozen=True, slots=True)
class Limits:
    """A mean difference is fine up to `absolute`, or up to `share` of the mean loss of B."""

    absolute: float = ABSOLUTE
    share: float = SHARE

    def holds(self, difference: float, loss: float) -> bool:
        return difference <= self.absolute or difference <= self.share * loss


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some pairs one after another: the means of |A - B| and of |B|."""

    first: Pair
    last: Pair
    mean: float
    loss: float

    @property
    def share(self) -> float:
        """The difference as a share of the loss of B; infinite where that is 0."""
        return self.mean / self.loss if self.loss else (math.inf if self.mean else 0.0)


@dataclass(slots=True)
class Judged:
    """`same`, and what speaks for or against it. `first` is the first pair beyond both limits, `stays` the one from
    which on they are apart on average; `parts` are fifths of what was compared; `ratio`
    a constant between the curves.
    """

    same: bool
    limits: Limits
    whole: Stretch
    parts: list[Stretch]
    beyond: int
    first: Pair | None = None
    stays: Pair | None = None
    not_finite: Pair | None = None
    both_not_finite: int = 0
    ratio: float | None = None
    above: float = 0.0


@dataclass(frozen=True, slots=True)
class FirstFifth:
    """The guide's "align a fifth first": `end` is its end in epochs or steps (`unit`); `planned` where the whole is
    known; `reached` the last place that was compared."""

    unit: str
    whole: float
    end: float
    planned: bool
    reached: float
    aligned: bool


def judged(found: Paired, limits: Limits) -> Judged:
    """The judgement of pairs, of which there is at least one."""
    pairs = found.pairs
    finite = [pair for pair in pairs if math.isfinite(pair.a) and math.isfinite(pair.b)]
    odd = [pair for pair in pairs if not _alike(pair)]
    parts = _parts(finite)
    whole = _stretch(finite) if finite else Stretch(pairs[0], pairs[-1], math.nan, math.nan)
    outside = [pair for pair in finite if _beyond(pair, limits)]
    same = not odd and bool(finite) and all(limits.holds(part.mean, part.loss) for part in parts)
    result = Judged(same, limits, whole, parts, len(outside))
    result.first = min([*outside[:1], *odd[:1]], key=lambda pair: pair.number, default=None)
    result.not_finite = odd[0] if odd else None
    result.both_not_finite = len(pairs) - len(finite) - len(odd)
    result.stays = None if same else _apart_to_the_end(finite, limits)
    result.above = sum(pair.a > pair.b for pair in finite) / len(finite) if finite else 0.0
    result.ratio = _constant(finite, limits)
    return result


def first_fifth(found: Paired, limits: Limits, epochs: int, steps: int) -> FirstFifth | None:
    """How the first fifth of the training stands. `epochs` and `steps` are those of the whole, 0 for not known."""
    pairs = [pair for pair in found.pairs if math.isfinite(pair.a) and math.isfinite(pair.b)]
    if not pairs:
        return None
    unit, at, whole = _numbered(pairs, epochs, steps)
    planned = unit == "epoch" or (unit == "step" and steps > 0)
    if not planned and len(pairs) < _PARTS:
        return None
    end = whole * FIFTH
    within = [pair for pair, place in zip(pairs, at, strict=True) if place <= end] or pairs[:1]
    number = max(1, round(_PARTS * len(within) / len(pairs)))  # as long as those of the whole: one verdict for both
    aligned = all(limits.holds(part.mean, part.loss) for part in _parts(within, number))
    odd = any(not _alike(pair) for pair in found.pairs if pair.number <= within[-1].number)
    return FirstFifth(unit, whole, end, planned, max(at), aligned and not odd)


def _numbered(pairs: Sequence[Pair], epochs: int, steps: int) -> tuple[str, list[float], float]:
    """What the pairs are counted by, the place of each, and how many the whole training has."""
    if epochs and all(pair.epoch is not None for pair in pairs):
        at = [pair.epoch or 0 for pair in pairs]
        from_zero = all(float(each).is_integer() for each in at) and min(at) == 0
        return "epoch", [each + from_zero for each in at], float(epochs)
    if all(pair.step is not None and pair.epoch is None for pair in pairs):
        at = [pair.step or 0 for pair in pairs]
        return "step", at, float(steps or max(at))
    return "value", [float(pair.number) for pair in pairs], float(len(pairs))


def _alike(pair: Pair) -> bool:
    """False where one is a number and the other is not, or both are none in different ways."""
    if math.isfinite(pair.a) and math.isfinite(pair.b):
        return True
    return (math.isnan(pair.a) and math.isnan(pair.b)) or pair.a == pair.b


def _beyond(pair: Pair, limits: Limits) -> bool:
    return not limits.holds(abs(pair.a - pair.b), abs(pair.b))


def _stretch(pairs: Sequence[Pair]) -> Stretch:
    number = len(pairs)
    mean = math.fsum(abs(pair.a / number - pair.b / number) for pair in pairs)
    return Stretch(pairs[0], pairs[-1], mean, math.fsum(abs(pair.b) / number for pair in pairs))


def _parts(pairs: Sequence[Pair], number: int = _PARTS) -> list[Stretch]:
    number = min(number, len(pairs))
    ends = [len(pairs) * part // number for part in range(number + 1)] if number else []
    return [_stretch(pairs[begin:end]) for begin, end in itertools.pairwise(ends)]


def _apart_to_the_end(pairs: Sequence[Pair], limits: Limits) -> Pair | None:
    """The first pair of the last stretches that are all beyond the limits, short ones or fifths, whichever begin
    earlier; None where the end is within them.
    """
    begins = []
    for size in (min(20, max(1, len(pairs) // 20)), max(1, len(pairs) // _PARTS)):
        for end in range(len(pairs), 0, -size):
            part = _stretch(pairs[max(0, end - size) : end])
            if limits.holds(part.mean, part.loss):
                break
            begins.append(max(0, end - size))
    if not begins:
        return None
    begin = min(begins)
    return next((pair for pair in pairs[begin:] if _beyond(pair, limits)), pairs[begin])


def _constant(pairs: Sequence[Pair], limits: Limits) -> float | None:
    """What A is times B, where that is the same at every step and not 1."""
    ratios = [pair.a / pair.b for pair in pairs if pair.b]
    if len(ratios) < 3 or len(ratios) < len(pairs):
        return None
    middle = median(ratios)
    steady = all(abs(ratio - middle) <= _STEADY * abs(middle) for ratio in ratios)
    return middle if steady and abs(middle - 1) > limits.share else None
