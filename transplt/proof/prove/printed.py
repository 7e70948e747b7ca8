"""What the two programs printed and saved: results that no optimizer shows, such as an accuracy."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterator

from transplt.proof.launch.reference import printed_results, saved_tensors
from transplt.proof.launch.runner import ScriptRun
from transplt.proof.prove.found import Difference
from transplt.render.cell import figure

#: How the cause begins where a saved file lacks a tensor, whose name follows.
LACKS = "without "
#: Results are printed with few digits: they may be so far apart, as a share.
BOUND = 1e-3
#: A result that moves by this part of the bound in one run may move by all of it in another.
_NEAR = 4.0
#: Of a fused optimizer the number of steps is none of its tensors.
_COUNT = re.compile(r"(^|\.)state\.\d+\.step$")


def other_results(one: ScriptRun, other: ScriptRun, but: Collection[str] = ()) -> list[Difference]:
    """The first printed result and the first saved tensor of the original that the other has otherwise, or not at all.

    `but` names results that are not compared, as `unrepeated` gives them.
    """
    found = []
    for kind in (_printed, _saved):
        found += [each for name, each in kind(one, other, BOUND) if name not in but][:1]
    return found


def unrepeated(one: ScriptRun, again: ScriptRun) -> set[str]:
    """The results that two runs of one program do not have in common: words of lines, and files or tensors in them."""
    both = ((one, again), (again, one))
    return {name for kind in (_printed, _saved) for pair in both for name, _ in kind(*pair, BOUND / _NEAR)}


def of_parameters(one: ScriptRun, names: Collection[str]) -> set[str]:
    """The saved tensors that are parameters of these names, whatever they are saved under."""
    every = ((key[0], name) for key, tensors in saved_tensors(one).items() for name in tensors)
    return {f"{file}: {name}" for file, name in every if any(f".{name}".endswith(f".{each}") for each in names)}


def compared(one: ScriptRun, but: Collection[str] = ()) -> tuple[int, int]:
    """How many printed results and saved tensors there are to compare."""
    files = {key[0]: tensors for key, tensors in saved_tensors(one).items() if key[0] not in but}
    saved = [f"{file}: {name}" for file, tensors in files.items() for name in tensors]
    return sum(words not in but for words, _ in printed_results(one)), sum(name not in but for name in saved)


def _printed(one: ScriptRun, other: ScriptRun, bound: float) -> Iterator[tuple[str, Difference]]:
    """Numbers of lines with a word such as `loss` or `acc`, line by line of the same words."""
    left, right = printed_results(one), printed_results(other)
    theirs: dict[str, list[float]] = defaultdict(list)
    for words, value in right:
        theirs[words].append(value)
    for words, value in left:
        if not theirs[words]:
            yield words, Difference(f"the original prints {figure(value)} in {words!r}, the migrated program nothing")
            continue
        again = theirs[words].pop(0)
        if not (math.isclose(value, again, rel_tol=bound, abs_tol=bound) or (math.isnan(value) and math.isnan(again))):
            what = f"the original prints {figure(value)} in {words!r}, the migrated program {figure(again)}"
            yield words, Difference(what)


def _saved(one: ScriptRun, other: ScriptRun, bound: float) -> Iterator[tuple[str, Difference]]:
    # One rank saves, whatever its number.
    left = saved_tensors(one)
    right = {(key[0], mine[1]): value for key, value in saved_tensors(other).items() for mine in left or [key]}
    for key, tensors in left.items():
        file = key[0].rpartition("#")[0]
        if key not in right:
            yield key[0], Difference(f"the original saves {file}, the migrated program does not")
            continue
        for name, value in tensors.items():
            again = right[key].get(name)
            if again is None and _COUNT.search(name):
                continue
            if again is None:
                what = f"{file} has no {name}, that of the original has"
                yield f"{key[0]}: {name}", Difference(what, cause=f"{LACKS}{name}")
                continue
            if value["sha256"] == again["sha256"]:
                continue
            near = value["shape"] == again["shape"] and all(
                math.isclose(value[k], again[k], rel_tol=bound, abs_tol=bound * max(1.0, abs(value["norm"])))
                for k in ("sum", "norm")
            )
            if not near:
                yield f"{key[0]}: {name}", Difference(f"{name} in {file} differs")
