"""What `transplt prove` says of sixty more mistakes and thirty right ports, twenty-five of them on frameworks.

    python -m tests.planted.second [NAME ...]        # without names: all of them

A mistake is judged strictly: `first` where the first place that the report names is its line, or one beside, in the
port or in the original; `right line` where another of the places is; `found` where the verdict alone is right;
`missed`. Of a right port the verdict itself is counted, so that one which was never compared (`runs`, `not run`) does
not pass for `equal`; `differs` and `stops` are a `false alarm`.

They were written by somebody who knew neither the first list nor the code of `prove`, and need lightning, timm,
transformers and accelerate: no part of CI. Half of what was missed at first was read afterwards, so what is counted now
is no figure for cases that nobody has seen.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.planted.planting import Told, prove

LIST = Path(__file__).parent / "second_list"
#: A line beside the right one is seen with it.
BESIDE = 1


def ported(case: dict[str, Any]) -> str:
    """The right port, or that with the mistake; ValueError where a text to replace does not stand there once."""
    text = (LIST / "ports" / case["port"]).read_text(encoding="utf-8")
    for old, new in case["swaps"]:
        if text.count(old) != 1:
            raise ValueError(f"{case['name']}: {text.count(old)} times in {case['port']}: {old!r}")
        text = text.replace(old, new)
    return text


def proven(case: dict[str, Any], folder: Path) -> Told:
    """Prove one case in a folder of its own."""
    original = (LIST / "originals" / case["original"]).read_text(encoding="utf-8")
    for name, text in (("original", original), ("migrated", ported(case))):
        (folder / name).mkdir(parents=True)
        (folder / name / "main.py").write_text(text, encoding="utf-8")
    options = [str(LIST / each) if each.endswith(".py") else each for each in case.get("options", [])]
    arguments = ["--", *case["args"]] if case.get("args") else []
    return prove(folder / "original", folder / "migrated", folder, case["nproc"], *options, *arguments)


def judged(case: dict[str, Any], told: Told) -> str:
    """`first`, `right line`, `found` or `missed` for a mistake; `equal`, `runs`, `not run` or `false alarm` for a right
    port."""
    if case["kind"] == "right":
        return "false alarm" if told.verdict in ("differs", "stops") else told.verdict
    if told.verdict not in case["verdicts"]:
        return "missed"
    if _is_near(told.first[:1], case["lines"]) or _is_near(told.first[1:], case["lost"]):
        return "first"
    named = _is_near(told.lines, case["lines"]) or _is_near(told.original_lines, case["lost"])
    return "right line" if named else "found"


def _is_near(named: Iterable[int | None], wanted: Sequence[int]) -> bool:
    return any(line is not None and abs(line - each) <= BESIDE for line in named for each in wanted)


def main(names: Sequence[str]) -> None:
    """Print a row as soon as it is known, and the counts at the end."""
    counts: Counter[str] = Counter()
    print("| case | verdict | judged | s |\n|---|---|---|---:|")
    with tempfile.TemporaryDirectory(prefix="transplt-planted-") as folder:
        for case in json.loads((LIST / "cases.json").read_text(encoding="utf-8")):
            if names and case["name"] not in names:
                continue
            begun = time.monotonic()
            told = proven(case, Path(folder) / case["name"])
            word = judged(case, told)
            counts[word] += 1
            print(f"| {case['name']} | {told.verdict} | {word} | {time.monotonic() - begun:.0f} |", flush=True)
    print("\n" + ", ".join(f"{number} {word}" for word, number in counts.most_common()))


if __name__ == "__main__":
    main(sys.argv[1:])
