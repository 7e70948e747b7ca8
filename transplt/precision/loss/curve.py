"""The curves that one log holds: named values, each with the step and epoch that its line names."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

#: So many names and so many values of a log are kept.
MOST_CURVES, MOST_POINTS = 300, 4_000_000

_BETWEEN = re.compile(r"[\s./@-]+")


def normal(name: str) -> str:
    """A name as it is compared: `Train Loss`, `train/loss` and `train_loss` are one."""
    return _BETWEEN.sub("_", name.strip().lower()).strip("_")


@dataclass(slots=True)
class Curve:
    """Values in the order of the log; step and epoch are NaN where the line does not give them."""

    name: str
    values: array[float] = field(default_factory=lambda: array("d"))
    steps: array[float] = field(default_factory=lambda: array("d"))
    epochs: array[float] = field(default_factory=lambda: array("d"))

    def __len__(self) -> int:
        return len(self.values)

    def add(self, value: float, step: float | None, epoch: float | None, *, redrawn: bool = False) -> None:
        """One more value; `redrawn`: a progress bar, which shows a step several times, the last time with its value."""
        last = (_known(self.steps[-1]), _known(self.epochs[-1])) if redrawn and self.values else (None, None)
        if (step, epoch) == last != (None, None):
            self.values[-1] = value
            return
        self.values.append(value)
        self.steps.append(math.nan if step is None else step)
        self.epochs.append(math.nan if epoch is None else epoch)

    def points(self) -> Iterator[tuple[float, float | None, float | None]]:
        """(value, step, epoch) in order."""
        for value, step, epoch in zip(self.values, self.steps, self.epochs, strict=True):
            yield value, _known(step), _known(epoch)


def _known(number: float) -> float | None:
    return None if math.isnan(number) else number


@dataclass(slots=True)
class Curves:
    """What one log holds. `by_who` are its curves, by the process that wrote them (empty: not known) and by name."""

    source: str
    by_who: dict[str, dict[str, Curve]] = field(default_factory=dict)
    total_steps: int = 0
    total_epochs: int = 0
    remarks: list[str] = field(default_factory=list)
    lines: int = 0
    _points: int = 0

    def add(
        self, name: str, value: float, step: float | None, epoch: float | None, *, who: str = "", redrawn: bool = False
    ) -> None:
        """One value of a curve; what goes beyond the limits is left out, and reported."""
        named = self.by_who.setdefault(who, {}) if who in self.by_who or len(self.by_who) < MOST_CURVES else {}
        key = normal(name)
        if (curve := named.get(key)) is None:
            if sum(map(len, self.by_who.values())) >= MOST_CURVES:
                self.remark(f"only the first {MOST_CURVES} names are read")
                return
            curve = named[key] = Curve(name)
        if self._points >= MOST_POINTS:
            self.remark(f"only the first {MOST_POINTS} values are read")
            return
        self._points += 1
        curve.add(value, step, epoch, redrawn=redrawn)

    def remark(self, text: str) -> None:
        """A remark on the log, once."""
        if text not in self.remarks:
            self.remarks.append(text)
