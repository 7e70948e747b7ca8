"""What the two programs printed and saved: results that no optimizer shows, such as an accuracy."""

from __future__ import annotations

import math
from collections import defaultdict

from transplt.emulator.reference import printed_results, saved_tensors
from transplt.emulator.runner import ScriptRun
from transplt.prove.found import Difference
from transplt.report.cell import figure

#: How the cause begins where a saved file lacks a tensor, whose name follows.
LACKS = "without "


def other_results(one: ScriptRun, other: ScriptRun, bound: float) -> list[Difference]:
    """Printed results and saved tensors of the original that the other has otherwise, or not at all."""
    return [*_printed(one, other, bound), *_saved(one, other, bound)]


def compared(one: ScriptRun) -> tuple[int, int]:
    """How many printed results and saved tensors there are to compare."""
    return len(printed_results(one)), sum(len(tensors) for tensors in saved_tensors(one).values())


def _printed(one: ScriptRun, other: ScriptRun, bound: float) -> list[Difference]:
    """Numbers of lines with a word such as `loss` or `acc`, line by line of the same words."""
    left, right = printed_results(one), printed_results(other)
    theirs: dict[str, list[float]] = defaultdict(list)
    for words, value in right:
        theirs[words].append(value)
    for words, value in left:
        if not theirs[words]:
            return [Difference(f"the original prints {figure(value)} in {words!r}, the migrated program nothing")]
        again = theirs[words].pop(0)
        if not (math.isclose(value, again, rel_tol=bound, abs_tol=bound) or (math.isnan(value) and math.isnan(again))):
            return [
                Difference(f"the original prints {figure(value)} in {words!r}, the migrated program {figure(again)}")
            ]
    return []


def _saved(one: ScriptRun, other: ScriptRun, bound: float) -> list[Difference]:
    # One rank saves, whatever its number.
    left = saved_tensors(one)
    right = {(key[0], mine[1]): value for key, value in saved_tensors(other).items() for mine in left or [key]}
    for key, tensors in left.items():
        if key not in right:
            return [Difference(f"the original saves {key[0].rpartition('#')[0]}, the migrated program does not")]
        for name, value in tensors.items():
            again = right[key].get(name)
            if again is None:
                what = f"{key[0].rpartition('#')[0]} has no {name}, that of the original has"
                return [Difference(what, cause=f"{LACKS}{name}")]
            if value["sha256"] == again["sha256"]:
                continue
            near = value["shape"] == again["shape"] and all(
                math.isclose(value[k], again[k], rel_tol=bound, abs_tol=bound * max(1.0, abs(value["norm"])))
                for k in ("sum", "norm")
            )
            if not near:
                return [Difference(f"{name} in {key[0].rpartition('#')[0]} differs")]
    return []
