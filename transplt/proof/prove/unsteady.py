"""Which figures a program itself makes of its roundings: a port proves nothing by having others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from transplt.proof.prove.found import Difference
from transplt.proof.prove.tolerance import PLAIN, REORDERED, Tolerance
from transplt.proof.prove.training import Training
from transplt.render.cell import many

#: All differences of two trainings within a tolerance.
Compare = Callable[[Training, Training, Tolerance], Iterator[Difference]]
#: The roundings of float32 that a parameter may be off; a step of an optimizer makes more of them.
ROUNDINGS, REORDERED_ROUNDINGS = PLAIN.roundings * 2.0**-23, REORDERED.roundings * 2.0**-23
#: A figure is left out where one random change of the parameters by so much moves it by a quarter of the bound; and as
#: long as the port is not so many times as far away as that change: another change would have moved it by more.
NEAR, FAR = 4.0, 8.0


@dataclass(frozen=True)
class Unsteady:
    """How far each figure of a program moved, as a share, when its parameters were off by roundings."""

    moved: dict[tuple[str | int, ...], float]

    @classmethod
    def between(cls, one: Training, shaken: Training, tolerance: Tolerance, compare: Compare) -> Unsteady:
        """Of a program's training, and of the one that was shaken."""
        found = compare(one, shaken, tolerance.narrowed(NEAR))
        return cls({each.figure: each.apart for each in found if each.figure})

    def explains(self, difference: Difference) -> bool:
        """Whether roundings come to as much."""
        return difference.apart <= FAR * self.moved.get(difference.figure, -1.0)

    def left(self, found: Iterable[Difference]) -> tuple[Difference | None, list[Difference]]:
        """The first difference that roundings do not explain, and those before it that they do."""
        explained: list[Difference] = []
        for each in found:
            if not self.explains(each):
                return each, explained
            explained.append(each)
        return None, explained


def compared_whole(explained: list[Difference], steps: int, whose: str = "the original's") -> tuple[int, str]:
    """How many steps were compared whole, of so many; and in one clause which figures were not."""
    first = min(each.step or 0 for each in explained)
    losses = [each.step or 0 for each in explained if each.figure[0] == "loss"]
    whole = min([steps, *(step - 1 for step in losses)])
    what = f"{many(len(explained), 'figure')} from step {first} on left out, which roundings decide"
    how = f"{whose} own move as far when its parameters are off by a few roundings"
    return whole, f"{what}: {how}"
