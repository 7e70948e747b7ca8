"""Compares a migrated script with its original, which runs on the same emulated device twice.

First the original is held against itself: numbers that differ between its two runs (times, speeds) mean nothing and are
left out. What repeats must be printed by the migrated script too, and saved checkpoints must be equal.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Sequence
from typing import Any

from transplt.proof.launch.runner import ScriptRun

_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w])|\b(?:nan|inf)\b")
#: Words of lines whose numbers are results rather than times.
MEASURE = re.compile(
    r"loss|acc|error|ppl|perplexity|score|reward|psnr|ssim|bleu|iou|recall|precision|nll|\bm[as]e\b|\bval(?:id)?\b|"
    r"\bf1\b|\bauc\b|\bdice\b|\bmrr\b|\bhits\b|\bworst\b|\belbo\b|\bfid\b|\bkl\b",
    re.IGNORECASE,
)
#: A time: "7s174ms"; and what moves the cursor of a progress bar.
_CLOCK = re.compile(r"(?<!\w)(?:\d+(?:\.\d+)?(?:ms|us|[Dhmsf]))+(?!\w)|[\b\x1b]")
#: A date and a time in the name of a file, or the seconds of a clock.
_MOMENT = re.compile(r"\d{2,4}(?:[-_:.T ]\d{2}){2,}|\d{8,}(?:\.\d+)?")
#: What `uuid` draws, with and without its hyphens.
_UUID = re.compile(r"(?<!X)X{8}(-?)X{4}\1[1-5]X{3}\1[89ab]X{3}\1X{12}(?!X)".replace("X", "[0-9a-f]"))
_TOLERANCE = 1e-5


def _skeleton(line: str) -> tuple[str, list[str]]:
    """A line without its numbers and UUIDs, and the numbers; "cuda" and "npu", "nccl" and "hccl" count as the same
    words."""
    text = re.sub(r"cuda|gpu|npu", "npu", without_uuids(line.rstrip()), flags=re.IGNORECASE)
    text = re.sub(r"nccl|hccl", "hccl", text, flags=re.IGNORECASE)
    return _NUMBER.sub("#", text), _NUMBER.findall(text)


def _close(a: str, b: str) -> bool:
    if a == b:
        return True
    x, y = float(a), float(b)
    return (math.isnan(x) and math.isnan(y)) or math.isclose(x, y, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)


def _lines(output: str) -> list[tuple[str, list[str]]]:
    return [_skeleton(line) for line in re.split(r"[\r\n]+", output) if line.strip()]


def printed_results(output: str) -> list[tuple[str, float]]:
    """(the line with its numbers and times left out, a number) for each number that a word such as `loss` precedes."""
    found: list[tuple[str, float]] = []
    for skeleton, numbers in _lines(output):
        words = skeleton.split("#")
        line = _CLOCK.sub("", skeleton)
        found += [
            (line, float(number))
            for before, number in zip(words, numbers, strict=False)
            if MEASURE.search(before) and not number.lstrip("+-").isdigit()
        ]
    return found


def compare(first: ScriptRun, second: ScriptRun, migrated: ScriptRun) -> dict[str, Any]:
    """`reason` is "", "reference-unstable" or "reference-differs"; `summary` is what was compared, `why` why the
    results could not be."""
    if first.code or second.code:
        failed = f"the original itself failed (exit code {first.code or second.code})"
        return _told("reference-unstable", f"{failed}, so nothing could be compared", failed)
    a, b, c = (_lines(each.output) for each in (first, second, migrated))
    differences: list[str] = []
    compared = unstable = results = unstable_results = 0
    repeats = _pairs(a, b)
    matches = _pairs(a, c)
    for i, (skeleton, numbers) in enumerate(a):
        again = repeats.get(i)
        stable = [_close(x, y) for x, y in zip(numbers, b[again][1], strict=True)] if again is not None else []
        stable += [False] * (len(numbers) - len(stable))
        unstable += stable.count(False)
        words = skeleton.split("#")  # a number is named by the words right before it
        unstable_results += sum(
            MEASURE.search(before) is not None for before, same in zip(words, stable, strict=False) if not same
        )
        if again is None:
            continue
        if i not in matches:
            differences.append(f"the original prints {_fill(skeleton, numbers)!r}, the migrated script does not")
            continue
        for x, y, same in zip(numbers, c[matches[i]][1], stable, strict=True):
            if same:
                compared += 1
                results += not x.lstrip("+-").isdigit()
                if not _close(x, y):
                    differences.append(
                        f"the original prints {x}, the migrated script {y} in {_fill(skeleton, numbers)!r}"
                    )
    saves, unstable_saves = _compare_saves(first, second, migrated, differences)
    reason = why = ""
    if differences:
        reason = "reference-differs"
    elif unstable_results or unstable_saves:
        reason = "reference-unstable"
        why = (
            f"two runs of the original differ ({unstable_results} printed results and {unstable_saves} saved "
            "tensors differ between them), so nothing can be equal to it"
        )
    elif not (results or saves):
        reason, why = "reference-unstable", "the original prints and saves no results that could be compared"
    summary = (
        f"{compared} printed numbers and {saves} saved tensors compared, {unstable} left out because the original does "
        f"not repeat them, {len(differences)} differences"
    )
    return _told(reason, why, summary, (compared, unstable, saves, unstable_saves), differences)


def _told(
    reason: str, why: str, summary: str, counts: tuple[int, ...] = (0,) * 4, differences: Sequence[str] = ()
) -> dict[str, Any]:
    names = ("numbers", "unstable", "tensors", "unstable_tensors")
    lines = [f"reference: {summary}", *(f"  {each}" for each in differences[:10])]
    rest = {"tolerance": _TOLERANCE, "differences": [*differences]}
    return {"reason": reason, "why": why, "summary": lines, **dict(zip(names, counts, strict=True)), **rest}


def _pairs(a: list[tuple[str, list[str]]], b: list[tuple[str, list[str]]]) -> dict[int, int]:
    """Index in `a` -> index in `b` of the lines with equal skeletons, in order."""
    matcher = difflib.SequenceMatcher(None, [s for s, _ in a], [s for s, _ in b], autojunk=False)
    return {block.a + k: block.b + k for block in matcher.get_matching_blocks() for k in range(block.size)}


def _fill(skeleton: str, numbers: list[str]) -> str:
    return "".join(p + n for p, n in zip(skeleton.split("#"), [*numbers, ""], strict=False))[:160]


def without_uuids(text: str) -> str:
    """A text without the UUIDs in it, which no second run repeats."""
    return _UUID.sub("<uuid>", text)


def timeless(name: str) -> str:
    """The name of a file without the time at which it was written and without UUIDs: no second run repeats these."""
    return _MOMENT.sub("#", without_uuids(name))


def saved_tensors(outcome: ScriptRun) -> dict[tuple[str, str], dict[str, Any]]:
    """(path without times and UUIDs, rank) with a running number for repeated saves -> tensor digests."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for process in outcome.processes:
        for save in process["saves"]:
            name, rank, n = timeless(save["path"]), str(save["rank"]), 0
            while (f"{name}#{n}", rank) in found:
                n += 1
            found[f"{name}#{n}", rank] = save["tensors"]
    return found


def _equal(a: dict[str, Any] | None, b: dict[str, Any] | None) -> bool:
    if a is None or b is None:
        return False
    if a["sha256"] == b["sha256"] and a["shape"] == b["shape"]:
        return True
    return (
        a["shape"] == b["shape"]
        and a["dtype"] == b["dtype"]
        and all(math.isclose(a[k], b[k], rel_tol=_TOLERANCE, abs_tol=_TOLERANCE) for k in ("sum", "norm"))
    )


def _compare_saves(first: ScriptRun, second: ScriptRun, migrated: ScriptRun, differences: list[str]) -> tuple[int, int]:
    """How many tensors were compared, and how many the original does not repeat; adds to `differences`."""
    a, b, c = saved_tensors(first), saved_tensors(second), saved_tensors(migrated)
    compared = unstable = 0
    for key, tensors in a.items():
        if key not in b:
            unstable += len(tensors)
        elif key not in c:
            differences.append(f"the original saves {key[0].rpartition('#')[0]}, the migrated script does not")
        else:
            for name, value in tensors.items():
                if _equal(value, b[key].get(name)):
                    compared += 1
                    if not _equal(value, c[key].get(name)):
                        differences.append(f"{key[0].rpartition('#')[0]}: tensor {name} differs")
                else:
                    unstable += 1
    return compared, unstable
