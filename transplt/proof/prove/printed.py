"""What the two programs printed and saved: results that no optimizer shows, such as an accuracy."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from transplt.base.render.cell import figure, many
from transplt.proof.launch.reference import printed_results, saved_tensors
from transplt.proof.launch.runner import ScriptRun
from transplt.proof.prove.found import Difference
from transplt.proof.prove.tolerance import TIMES
from transplt.proof.prove.training import Training

#: How the cause begins where a saved file lacks a tensor, whose name follows.
LACKS = "without "
#: Results are printed with few digits: they may be so far apart, as a share.
BOUND = 1e-3
#: Parameters that ranks have trained are off by roundings that were added up in another order.
ROUNDED = 2e-2
#: Where roundings may move a result by more than this share of it, it says nothing.
_DECIDED = 0.1
#: Of a fused optimizer the number of steps is none of its tensors.
_COUNT = re.compile(r"(^|\.)state\.\d+\.step$")


def other_results(
    one: ScriptRun, other: ScriptRun, but: Collection[str] = (), bounds: Mapping[str, float] | None = None
) -> list[Difference]:
    """The first printed result and the first saved tensor of the original that the other has otherwise, or not at all.

    `but` names results that are not compared, `bounds` has how far others may be apart, as a share, as `within` and
    `decided` give them; a thousandth is nothing anyway.
    """
    found = []
    for kind in (_printed, _saved):
        apart = ((name, gap, each) for name, gap, each in kind(one, other) if name not in but)
        found += [each for name, gap, each in apart if gap > max(BOUND, (bounds or {}).get(name, 0.0))][:1]
    return found


def reworded(one: ScriptRun, other: ScriptRun) -> bool:
    """Whether lines with results of one have other words in the other, so that only its own can be held against it."""
    left, right = ({words for words, _ in results_of(each)} for each in (one, other))
    return bool(right) and not left <= right


def other_saved(one: ScriptRun, several: ScriptRun, rank: Training) -> Difference | None:
    """The first tensor of a file that one process saves, and ranks of the same batches otherwise; the line is that
    which saves last."""
    place = next((event.place for event in rank.of("save")[::-1]), None)
    found = (each for _, gap, each in _saved(one, several) if ROUNDED < gap < math.inf)
    return next((replace(each, place=place) for each in found), None)


def apart(one: ScriptRun, other: ScriptRun) -> dict[str, Difference]:
    """The printed results and saved tensors that two runs do not have to the last bit in common, by their names."""
    return {name: each for kind in (_printed, _saved) for name, _, each in kind(one, other)}


def within(one: ScriptRun, shaken: Iterable[ScriptRun]) -> dict[str, float]:
    """How far results may be apart, by the words of their lines, and by files or tensors in them: as far as in runs
    of the same program that were shaken, some times over; infinitely far where only one of the runs has a result."""
    found: dict[str, float] = {}
    for again in shaken:
        for kind in (_printed, _saved):
            gaps = [(name, gap) for name, gap, _ in kind(one, again)]
            gaps += [(name, gap) for name, gap, _ in kind(again, one) if math.isinf(gap)]
            for name, gap in gaps:
                found[name] = max(found.get(name, 0.0), TIMES * gap)
    return found


def decided(bounds: Mapping[str, float]) -> set[str]:
    """The results that roundings decide."""
    return {name for name, bound in bounds.items() if bound > _DECIDED}


def of_parameters(one: ScriptRun, names: Collection[str]) -> set[str]:
    """The saved tensors that are parameters of these names, whatever they are saved under."""
    every = ((key[0], name) for key, tensors in saved_tensors(one).items() for name in tensors)
    return {f"{file}: {name}" for file, name in every if any(f".{name}".endswith(f".{each}") for each in names)}


def compared(one: ScriptRun, but: Collection[str] = ()) -> tuple[int, int]:
    """How many printed results and saved tensors there are to compare."""
    files = {key[0]: tensors for key, tensors in saved_tensors(one).items() if key[0] not in but}
    saved = [f"{file}: {name}" for file, tensors in files.items() for name in tensors]
    return sum(words not in but for words, _ in results_of(one)), sum(name not in but for name in saved)


def _of_ranks(one: ScriptRun) -> bool:
    return len({process.get("rank") for process in one.processes} - {None}) > 1


def results_of(one: ScriptRun) -> list[tuple[str, float]]:
    """The results that a run prints; of ranks, which write into each other's lines, those of one behind another's."""
    if not _of_ranks(one):
        return printed_results(one.output)
    ranked = sorted((process for process in one.processes if process.get("rank")), key=lambda each: int(each["rank"]))
    return [each for process in ranked for each in printed_results(process.get("output", ""))]


def unsaid(one: ScriptRun, other: ScriptRun) -> dict[str, str]:
    """The words of results that the other does not print, or as often, with no other number among them; what is said
    of them."""
    left, theirs = _by_words(one, other)
    mine: dict[str, list[float | None]] = defaultdict(list)
    for words, value in left:
        mine[words].append(value)
    found = {}
    for words, values in mine.items():
        fewer, more = sorted((values, theirs[words]), key=len)
        rest = iter(more)
        if len(fewer) < len(more) and all(any(_gap(each, value, 1.0) <= BOUND for each in rest) for value in fewer):
            times = f"{many(len(values), 'time')}, the migrated program {many(len(theirs[words]), 'time')}"
            found[words] = f"the original prints {words!r} {times}"
    return found


def _by_words(one: ScriptRun, other: ScriptRun) -> tuple[list[tuple[str, float]], dict[str, list[float | None]]]:
    """The results of one in their order, and those of the other by the words of the one; None for what is not kept."""
    left, right, logged = results_of(one), results_of(other), printed_results(other.errors)
    theirs: dict[str, list[float | None]] = defaultdict(list)
    for words, value in right:
        theirs[words].append(value)
    theirs |= _said_otherwise(left, [*right, *logged])
    for words, count in Counter(words for words, _ in left if words not in theirs).items():
        # A logger says it behind the time, and of much that was logged only the end is kept.
        values = [value for line, value in logged if _plain(line).endswith(_plain(words))]
        theirs[words] += [*[None] * (count - len(values)), *values] if values else []
    return left, theirs


def _printed(one: ScriptRun, other: ScriptRun) -> Iterator[tuple[str, float, Difference]]:
    """Numbers of lines with a word such as `loss` or `acc` that are not alike, line by line of the same words: the
    words, and how far the two are apart, as a share."""
    left, theirs = _by_words(one, other)
    for words, value in left:
        if not theirs[words]:
            what = f"the original prints {figure(value)} in {words!r}, the migrated program prints nothing"
            yield words, math.inf, Difference(what)
            continue
        again = theirs[words].pop(0)
        if again is not None and (gap := _gap(value, again, 1.0)):
            what = f"the original prints {figure(value)} in {words!r}, the migrated program {figure(again)}"
            yield words, gap, Difference(what)


def _plain(words: str) -> str:
    """The words of a line without what only parts them."""
    return re.sub(r"[^\w#]+", " ", words).strip()


def _said_otherwise(left: list[tuple[str, float]], right: list[tuple[str, float]]) -> dict[str, list[float | None]]:
    """Of words that only the one has the numbers, where all of them come in their order behind words that only the
    other has."""
    old, new = ({words for words, _ in side} for side in (left, right))
    found: dict[str, list[float | None]] = {}
    for words in old - new:
        rest = iter([value for each, value in right if each not in old])
        wanted = [value for each, value in left if each == words]
        values = [next((each for each in rest if _gap(value, each, 1.0) <= BOUND), None) for value in wanted]
        found |= {words: values} if None not in values else {}
    return found


def _gap(one: float | None, other: float | None, scale: float) -> float:
    """How far two numbers are apart, as a share of the larger one and of `scale`."""
    if one is None or other is None or one == other or (math.isnan(one) and math.isnan(other)):
        return 0.0
    gap = abs(one - other) / max(abs(one), abs(other), scale)
    return gap if math.isfinite(gap) else math.inf


def _saved(one: ScriptRun, other: ScriptRun) -> Iterator[tuple[str, float, Difference]]:
    # One rank saves, whatever its number.
    left, every = saved_tensors(one), saved_tensors(other)
    if _of_ranks(one):  # they send objects as what is saved in a buffer
        left = {key: tensors for key, tensors in left.items() if not key[0].startswith("<buffer>")}
    right = {(key[0], mine[1]): value for key, value in every.items() for mine in left or [key]}
    for key, tensors in left.items():
        file = key[0].rpartition("#")[0]
        for name, value in tensors.items():
            again = right.get(key, {}).get(name)
            gaps = [_apart(value, again)] if again is not None else [*_elsewhere(name, value, every)]
            gap = min(gaps, default=math.inf)
            if gap == 0.0 or (again is None and _COUNT.search(name)):
                continue
            if not gaps and key not in right:
                yield key[0], gap, Difference(f"the original saves {file}, the migrated program does not")
                break
            what = f"{name} in {file} differs" if gaps else f"{file} has no {name}, that of the original has"
            yield f"{key[0]}: {name}", gap, Difference(what, cause="" if gaps else f"{LACKS}{name}")


def _apart(value: dict[str, Any], again: dict[str, Any]) -> float:
    """How far two saved tensors are apart."""
    if value["sha256"] == again["sha256"]:
        return 0.0
    gap = max(_gap(value[k], again[k], max(1.0, abs(value["norm"]))) for k in ("sum", "norm"))
    return gap if value["shape"] == again["shape"] else math.inf


def _elsewhere(name: str, value: dict[str, Any], every: Mapping[Any, dict[str, Any]]) -> Iterator[float]:
    """How far a saved tensor is apart from those that files have under its name, below whatever key: one file may hold
    what two did."""
    for tensors in every.values():
        for key, again in tensors.items():
            same = f".{key}".endswith(f".{name}") or f".{name}".endswith(f".{key}")
            if again["shape"] == value["shape"] and (same or again["sha256"] == value["sha256"]):
                yield _apart(value, again)
