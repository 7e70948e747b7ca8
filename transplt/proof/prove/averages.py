"""Printed means over the ranks that are W times too large or too small: not divided, or divided twice."""

from __future__ import annotations

import ast
import math
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


def other_average(one: ScriptRun, several: ScriptRun, rank: Training, world: int, root: Path) -> Difference | None:
    """A figure that one process prints, and W with the same batches W times as large, or a W-th of it.

    Any other distance is none: a rank may print the figure of its own share. So may a share of few samples (`_counted`)
    be half that of all by chance: that is one only where another figure is so, too.
    """
    theirs = printed_results(several.output)
    suspects: dict[float, dict[float, Difference]] = {}
    for place, (words, value) in enumerate(printed_results(one.output)):
        if place >= len(theirs) or theirs[place][0] != words or not value:
            break
        ratio = theirs[place][1] / value
        for factor, cause in ((world, "summed over the ranks and not divided"), (1 / world, "divided twice")):
            if math.isclose(ratio, factor, rel_tol=1e-3):
                what = f"one process prints {value:g} in {words!r}, {world} print {theirs[place][1]:g}: {cause}"
                found = Difference(what, _line(rank, root, divided=ratio < 1))
                suspects.setdefault(factor, {}).setdefault(value, found)
    sure = (alike for alike in suspects.values() if len(alike) > 1 or not all(map(_counted, alike)))
    return next((next(iter(alike.values())) for alike in sure), None)


def about_other_averages(
    one: ScriptRun, several: ScriptRun, rank: Training, world: int, root: Path
) -> Difference | None:
    """The same where batches cannot be the same: all figures of a line, which is printed more than once, are about W
    times as large, or about a W-th. The loss of a step as it is, which may be a sum over a share, is left out."""
    losses = [loss.value for step in rank.steps for loss in step.losses if isinstance(loss.value, float)]
    figures: dict[str, list[tuple[float, float]]] = {}
    for (words, value), (others, theirs) in zip(
        printed_results(one.output), printed_results(several.output), strict=False
    ):
        if words != others:
            break
        if value and theirs and not any(math.isclose(theirs, each, rel_tol=1e-3) for each in losses):
            figures.setdefault(words, []).append((value, theirs))
    for words, both in figures.items():
        ratios = [theirs / value for value, theirs in both]
        for factor, cause in ((world, "summed over the ranks and not divided"), (1 / world, "divided twice")):
            near = all(math.isclose(each, factor, rel_tol=_ABOUT) for each in ratios)
            if near and len({*both}) > 1 and not all(_counted(theirs) for _, theirs in both):
                value, theirs = both[0]
                what = f"one process prints {value:g} in {words!r}, {world} print {theirs:g}: {cause}"
                return Difference(what, _line(rank, root, divided=factor < 1))
    return None


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
