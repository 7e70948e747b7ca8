"""Printed means over the ranks that are W times too large or too small: not divided, or divided twice."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Iterator
from pathlib import Path

from transplt.base.text.regular_file import SOURCE, read_regular
from transplt.proof.launch.reference import printed_results
from transplt.proof.launch.runner import ScriptRun
from transplt.proof.prove.found import Difference
from transplt.proof.prove.ranks import asked_collectives
from transplt.proof.prove.training import Place, Training

_SUMS = ("all_reduce", "reduce")
#: How far figures of other batches may be from a factor.
_ABOUT = 0.15
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
    losses = [loss.value for step in rank.steps for loss in step.losses if about and isinstance(loss.value, float)]
    figures: dict[str, list[tuple[str, float, float]]] = {}
    for (words, value), (others, theirs) in zip(*map(printed_results, (one.output, several.output)), strict=False):
        if words != others or not value:
            break
        if not any(math.isclose(theirs, each, rel_tol=1e-3) for each in losses):
            figures.setdefault(words, []).append((words, value, theirs))
    for factor, cause in ((world, "summed over the ranks and not divided"), (1 / world, "divided twice")):
        for words, value, theirs in _times(figures.values(), factor, about=about):
            what = f"one process prints {value:g} in {words!r}, {world} print {theirs:g}: {cause}"
            return Difference(what, _line(rank, root, divided=factor < 1))
    for line in figures.values():
        if len({value for _, value, _ in line}) > 1 and all(after / before > _FAR * world for _, before, after in line):
            words, value, theirs = line[0]
            what = f"one process prints {value:g} in {words!r}, {world} print {theirs:g}"
            what += ": no share of the data is so far off"
            return Difference(what, _line(rank, root, divided=False))
    return None


def _times(
    figures: Iterable[list[tuple[str, float, float]]], factor: float, *, about: bool
) -> Iterator[tuple[str, float, float]]:
    """The first of each list of figures that are so many times as large, and not by chance."""
    for every in figures:
        alike = [each for each in every if math.isclose(each[2] / each[1], factor, rel_tol=_ABOUT if about else 1e-3)]
        values = {value for _, value, _ in alike}
        sure = not all(map(_counted, values))
        if (sure and len(values) > 1 and len(alike) == len(every)) if about else (sure or len(values) > 1):
            yield alike[0]


def _counted(value: float) -> bool:
    """Whether a figure may be a share, or a percentage, of a few counted samples."""
    return any(
        math.isclose(share * samples, round(share * samples), abs_tol=5e-4)
        for share in (value, value / 100)
        for samples in range(1, 65)
        if 0 <= share <= 1
    )


def _line(rank: Training, root: Path, *, divided: bool) -> Place | None:
    """The last sum of one number over the ranks, or where its result is divided last."""
    sums = [event for event in asked_collectives(rank) if event.fields["kind"] in _SUMS]
    place = sums[-1].place if sums else None
    if place is None or not divided:
        return place
    try:
        tree = ast.parse(read_regular(root / place.path, SOURCE))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return place
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.lineno == place.line and node.args]
    names = {ast.unparse(call.args[0]) for call in calls}
    behind = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.AugAssign | ast.BinOp) and 0 <= node.lineno - place.line <= 8 and _divides(node, names)
    ]
    return Place(place.path, max(behind)) if behind else place


def _divides(node: ast.AugAssign | ast.BinOp, names: set[str]) -> bool:
    if not isinstance(node.op, ast.Div):
        return False
    divided = node.target if isinstance(node, ast.AugAssign) else node.left
    return any(ast.unparse(each) in names for each in ast.walk(divided) if isinstance(each, ast.expr))
