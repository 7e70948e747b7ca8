"""What a comparison found: differences with their cause, and reasons why something could not be compared."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from transplt.proof.prove.tolerance import Tolerance
from transplt.proof.prove.training import Place
from transplt.render.verdict import Verdict


@dataclass(frozen=True)
class Difference:
    """One difference. `what` is one sentence; `place` the line of the migrated program that it comes from, as far as
    that is known, `original` the line there; `step` counts from 1 (0: before the first, None: at no step). `cause` is
    how the line was found; `figure` is what was measured there, the same in every comparison of one program, and
    `apart` how far the two are apart, as a share."""

    what: str
    place: Place | None = None
    original: Place | None = None
    step: int | None = None
    cause: str = ""
    figure: tuple[str | int, ...] = ()
    apart: float = math.inf

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


@dataclass(frozen=True)
class Curve:
    """The steps of one optimizer, in their order: (loss of the one, loss of the other, distance of the parameters as a
    share of their norm), None for what a step does not have. `name` says which optimizer."""

    name: str
    rows: list[tuple[float | None, float | None, float | None]]


@dataclass
class Findings:
    """What one comparison came to. `steps`, `printed` results and `saved` tensors are how many were compared, within
    `tolerance` (None: to the bit, or nothing was); `differences` the gravest first; `properties` are judged one by one;
    `reasons` are what was not compared and why; `curves` are the steps, a curve for each optimizer; `sides` names the
    two."""

    steps: int = 0
    printed: int = 0
    saved: int = 0
    tolerance: Tolerance | None = None
    differences: list[Difference] = field(default_factory=list)
    properties: list[Property] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    sides: tuple[str, str] = ("original", "migrated")
    curves: list[Curve] = field(default_factory=list)


@dataclass(frozen=True)
class Part:
    """One comparison: what with what, and its verdict. `left` is why nothing was compared in one that is `equal`,
    since the two rightly compute something else."""

    title: str
    verdict: Verdict
    findings: Findings
    left: str = ""
