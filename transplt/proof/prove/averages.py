"""Printed means over the ranks that are W times too large or too small: not divided, or divided twice."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from transplt.proof.launch.reference import MEASURE
from transplt.proof.launch.runner import ScriptRun
from transplt.proof.prove.found import Difference
from transplt.proof.prove.printed import results_of
from transplt.proof.prove.rank_conditions import read_source
from transplt.proof.prove.ranks import asked_collectives
from transplt.proof.prove.slices import behind
from transplt.proof.prove.training import Place, Training

_SUMS = ("all_reduce", "reduce")
#: A line with its numbers left out, and which of them.
_Key = tuple[str, int]
#: How far figures of other batches may be from a factor.
_ABOUT = 0.15
#: A figure of all ranks is not so far from that of one process, as a share; so many lines lead from it to a collective.
_OFF, _NEAR = 0.2, 12
#: No share of the data makes each figure of a line so many times W as large.
_FAR = 4


def other_average(
    one: ScriptRun, several: ScriptRun, rank: Training, world: int, root: Path, *, about: bool = False
) -> Difference | None:
    """A figure that one process prints, and W with the same batches W times as large, or a W-th of it.

    Any other distance is none, but a large one of all figures of a line: a rank may print the figure of its own share.
    So may a share of few samples (`_counted`) be half that of all by chance: that is one only where another figure of
    the line is so, too.

    With `about` the batches are others: all figures of a line that is printed more than once are about so much larger.
    The loss of a step as it is, which may be a sum over a share, is left out.
    """
    figures = _figures(one, several, rank if about else None)
    last = next((event.place for event in asked_collectives(rank)[::-1] if event.fields["kind"] in _SUMS), None)
    for factor, cause in ((world, "summed over the ranks and not divided"), (1 / world, "divided twice")):
        for key, value, theirs in _times(figures, factor, about=about):
            what = f"one process prints {value:g} in {key[0]!r}, {world} print {theirs:g}: {cause}"
            return Difference(what, _source(*key, rank, root, divided=factor < 1) or last)
    for key, line in () if about else figures.items():
        if len({value for value, _ in line}) < 2 or any(math.isclose(*each, rel_tol=_OFF) for each in line):
            continue
        place = _source(*key, rank, root)
        far = all(after / before > _FAR * world for before, after in line)
        if place is not None or far:
            why = "no share of the data is so far off" if far else "it comes of what all ranks have"
            what = f"one process prints {line[0][0]:g} in {key[0]!r}, {world} print {line[0][1]:g}: {why}"
            return Difference(what, place or last)
    return None


def _figures(one: ScriptRun, several: ScriptRun, but: Training | None) -> dict[_Key, list[tuple[float, float]]]:
    """The numbers of lines that both print, up to the first that is not in both, `but` for the losses of that."""
    steps = but.steps if but is not None else ()
    losses = [loss.value for step in steps for loss in step.losses if isinstance(loss.value, float)]
    found: dict[_Key, list[tuple[float, float]]] = {}
    turns: Counter[str] = Counter()
    for (words, value), (others, theirs) in zip(*map(results_of, (one, several)), strict=False):
        if words != others or not value:
            break
        if not any(math.isclose(theirs, each, rel_tol=1e-3) for each in losses):
            every = sum(MEASURE.search(before) is not None for before in words.split("#")[:-1])
            found.setdefault((words, turns[words] % max(every, 1)), []).append((value, theirs))
        turns[words] += 1
    return found


def _source(words: str, turn: int, rank: Training, root: Path, *, divided: bool = False) -> Place | None:
    """The collective that gave this number of a printed line its value, or a division (if it is `divided`) of what that
    gave; None where a rank prints a number of its own."""
    before = [each for each in words.split("#") if MEASURE.search(each)][turn].split()
    asked = [event.place for event in asked_collectives(rank) if event.place is not None]
    for path in dict.fromkeys(place.path for place in asked if before):
        text = read_source(str(root / path)) or ""
        lines = text.splitlines()
        for told in re.finditer(rf"{re.escape(before[-1])}\s*\{{\W*(\w+)", text):
            gives = re.compile(rf"\s*(?:\w+, )*{told[1]}\b[\w, \[\]]* \W?= ")
            given = [line for line in range(1, text.count("\n", 0, told.start()) + 1) if gives.match(lines[line - 1])]
            nearest = itertools.islice(behind(text, given[-1]), _NEAR) if given else ()
            way = [Place(path, line) for statement in nearest for line in statement]
            if not {*way}.isdisjoint(asked):
                return next(each for each in way if each in asked or (divided and "/" in lines[each.line - 1]))
    return None


def _times(
    figures: Mapping[_Key, list[tuple[float, float]]], factor: float, *, about: bool
) -> Iterator[tuple[_Key, float, float]]:
    """The first of each list of figures that are so many times as large, and not by chance."""
    for key, every in figures.items():
        alike = [each for each in every if math.isclose(each[1] / each[0], factor, rel_tol=_ABOUT if about else 1e-3)]
        values = {value for value, _ in alike}
        sure = not all(map(_counted, values))
        if (sure and len(values) > 1 and len(alike) == len(every)) if about else (sure or len(values) > 1):
            yield key, *alike[0]


def _counted(value: float) -> bool:
    """Whether a figure may be a share, or a percentage, of a few counted samples."""
    return any(
        math.isclose(share * samples, round(share * samples), abs_tol=5e-4)
        for share in (value, value / 100)
        for samples in range(1, 65)
        if 0 <= share <= 1
    )
