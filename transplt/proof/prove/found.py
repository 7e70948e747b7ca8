"""What a comparison found: differences with their cause, and reasons why something could not be compared."""

from __future__ import annotations

from dataclasses import dataclass, field

from transplt.base.render.cell import many
from transplt.base.render.verdict import Verdict, Word
from transplt.proof.prove.training import Place


@dataclass(frozen=True)
class Difference:
    """One difference. `what` is one sentence; `place` the line of the migrated program that it comes from, as far as
    that is known, `original` the line there; `step` counts from 1 (0: before the first, None: at no step). `cause` is
    how the line was found; `figure` is what was measured there, and `callers` are the lines that led to it, the nearest
    first. `event`: the place is that of an event which only one of the two has, or has otherwise, and so the cause."""

    what: str
    place: Place | None = None
    original: Place | None = None
    step: int | None = None
    cause: str = ""
    figure: tuple[str | int, ...] = ()
    callers: tuple[Place, ...] = ()
    event: bool = False

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        there = f" (original: {self.original})" if self.original and self.original != self.place else ""
        because = f"; {self.cause}" if self.cause else ""
        return f"{where}{self.what}{there}{because}"


@dataclass(frozen=True)
class Property:
    """One thing that has to hold between the ranks of a run, such as `the same parameters`, and what was found."""

    name: str
    verdict: Verdict

    @property
    def word(self) -> str:
        """What a report calls it: nothing is equal, since shares of the data are right where they differ."""
        return "ok" if self.verdict.word is Word.EQUAL else str(self.verdict.word)

    def __str__(self) -> str:
        return f"{self.name}: {self.word}: {self.verdict.sentence}"


@dataclass(frozen=True)
class Curve:
    """The steps of one optimizer, in their order: (loss of the one, loss of the other, distance of the parameters as a
    share of their norm), None for what a step does not have. `name` says which optimizer."""

    name: str
    rows: list[tuple[float | None, float | None, float | None]]


@dataclass(frozen=True)
class Rounding:
    """The roundings in which two programs may differ, as a share of each number."""

    share: float


@dataclass(frozen=True)
class Width:
    """How far figures of one step (its optimizer, its number from 0) may be apart, the widest of each kind as a share;
    None where the step has none. Metrics of schedules and tensors at the end belong to no step (None, None)."""

    optimizer: int | None
    step: int | None
    loss: float | None = None
    gradient: float | None = None
    parameter: float | None = None
    buffer: float | None = None
    metric: float | None = None
    end: float | None = None


@dataclass
class Findings:
    """What one comparison came to. `steps`, `printed` results and `saved` tensors are how many were compared; figures
    that are not equal to the bit were held to `widths`, which are what roundings of `rounding` make of them (None:
    nothing was compared); `differences` are the gravest first; `properties` are judged one by one; `reasons` are what
    was not compared and why; `curves` are the steps, a curve for each optimizer; `sides` names the two; `of_ranks`:
    lines that only many cards need may cause a difference, not the others (None: both); `scheduled`: a learning rate
    changed in the steps."""

    steps: int = 0
    printed: int = 0
    saved: int = 0
    rounding: Rounding | None = None
    widths: list[Width] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    properties: list[Property] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    sides: tuple[str, str] = ("original", "migrated")
    curves: list[Curve] = field(default_factory=list)
    of_ranks: bool | None = False
    scheduled: bool = False

    @property
    def counted(self) -> list[str]:
        """What was compared: `12 steps`, `3 saved tensors`."""
        counts = (self.steps, "step"), (self.printed, "printed result"), (self.saved, "saved tensor")
        return [many(count, noun) for count, noun in counts if count]


@dataclass(frozen=True)
class Part:
    """One comparison: what with what, and its verdict. `left` is why nothing was compared in one that is `equal`,
    since the two rightly compute something else."""

    title: str
    verdict: Verdict
    findings: Findings
    left: str = ""
