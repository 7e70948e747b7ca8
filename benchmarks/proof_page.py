"""docs/reference/proof.md from what `proof.py` kept."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from proof_scripts import PROVEN, READ, REPOSITORIES

Result = dict[str, Any]
WAYS = {
    "plain": "the migration",
    "distributed": "`distributed`, 1 and 2 processes",
    "four": "`distributed`, 4",
    "amp": "`--amp native`",
    "tune": "`--tune all`",
}
WORDS = ("equal", "runs", "differs", "stops", "not run")

_HEAD = """# Proof

Public scripts that train on a GPU, migrated and held against themselves. `transplt prove` runs the original on the CPU,
with its CUDA calls answered by a stand-in, and what was written on the emulated NPU, with the same seeds and the same
data, and compares every step. A verdict says what was executed and compared; it says nothing of speed, of memory, or of
the numerics of a card ([emulator.md](../emulator.md)). Data are a few random samples, networks and epochs are small, so
that a script takes two to eight steps, and none more than {steps}: `benchmarks/many_cards_scripts.py` and
`benchmarks/proof_scripts.py` say how each is made small. torchvision, PIL, tqdm and some more are stand-ins.

Made {when} with torch {torch}, Python {python} and transplt {transplt}, by

    python benchmarks/proof.py FOLDER --resume

where FOLDER holds clones of the repositories [below](#repositories). What came of each is in
`docs/reference/proof.json` as soon as it is known; without `--resume` all is proven anew.

The words are those of `transplt prove`: `equal` (what was compared agrees), `runs` (ran to its end, and something could
not be compared), `differs`, `stops`, `not run`. A theme is proven with the migration that it is part of, against the
original: mixed precision against the original's float32, with a scale that is fixed at 128 since so few steps would be
over before a dynamic one has settled; several processes against each other, and against one that
was given the same global batches. `-`: not written, since it is refused with a reason or nothing in the script asks for
it; such cells do not count.
"""


def page(results: list[Result]) -> str:
    """The page. Only what ran is on it: a script without a proof of its plain migration is left out."""
    by = {(each["script"], each["way"]): each for each in results}
    plain = [by[script.name, "plain"] for script in PROVEN if (script.name, "plain") in by]
    runs = [each for each in plain if not each["original"]["stop"] and _on_a_card(each)]
    stopped = [each for each in plain if each["original"]["stop"]]
    no_card = [each for each in plain if not each["original"]["stop"] and not _on_a_card(each)]
    proven = [by[each["script"], way] for each in runs for way in WAYS if (each["script"], way) in by]
    parts = [_HEAD.format(**_versions(results)), _ran(plain, stopped, no_card), _shares(runs, by), _table(runs, by)]
    parts += [_otherwise(proven), _not_compared(proven), _not_written(proven), _left_out(stopped, no_card)]
    parts.append(_repositories(plain))
    return "\n".join(part for part in parts if part)


def _on_a_card(result: Result) -> bool:
    return bool(result["original"]["operators"])


def _versions(results: list[Result]) -> dict[str, str]:
    def told(name: str) -> str:
        values = sorted({each[name] for each in results if name in each})
        return values[0] if len(values) == 1 else f"{values[0]} to {values[-1]}" if values else "?"

    version = f"{told('transplt')} (the commit of each proof stands in `docs/reference/proof.json`)"
    return {name: told(name) for name in ("python", "torch", "steps")} | {"when": told("date"), "transplt": version}


def _ran(plain: list[Result], stopped: list[Result], no_card: list[Result]) -> str:
    """How many of the scripts can be proven here at all, and why the others cannot."""
    lacking = [each for each in stopped if "ModuleNotFoundError" in each["original"]["stop"]]
    rest = [each for each in stopped if each not in lacking]
    count = len(plain) - len(stopped) - len(no_card)
    rows = [
        ("its original runs here and computes on a card", count),
        ("a package is missing that nothing stands for here", len(lacking)),
        ("the original stops by itself, with this PyTorch or without its data", len(rest)),
        ("nothing of it is on a card", len(no_card)),
    ]
    lines = ["## How many ran at all", "", f"| of {len(plain)} scripts | | share |", "|---|---:|---:|"]
    lines += [f"| {what} | {number} | {100 * number / max(len(plain), 1):.0f} % |" for what, number in rows]
    return "\n".join([*lines, "", "Each of the others stands [below](#scripts-that-do-not-count) with its reason.", ""])


def _shares(runs: list[Result], by: dict[tuple[str, str], Result]) -> str:
    lines = [
        "## How many are equal",
        "",
        "| | written and proven | equal | share | " + " | ".join(WORDS[1:]) + " |",
        "|---" + "|---:" * 7 + "|",
    ]
    for way, title in WAYS.items():
        words = [by[each["script"], way]["verdict"] for each in runs if (each["script"], way) in by]
        words = [word for word in words if word in WORDS]
        if words:
            equal = words.count("equal")
            cells = [title, len(words), equal, f"{100 * equal / len(words):.0f} %", *map(words.count, WORDS[1:])]
            lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join([*lines, ""])


def _table(runs: list[Result], by: dict[tuple[str, str], Result]) -> str:
    ways = [way for way in WAYS if any((each["script"], way) in by for each in runs)]
    lines = ["## Script by script", "", "An empty cell was not tried; `steps` are those compared of the migration.", ""]
    lines.append("| kind | script | steps | " + " | ".join(WAYS[way] for way in ways) + " |")
    lines.append("|---|---|---:" + "|---" * len(ways) + "|")
    for each in runs:
        steps = max((part.get("steps", 0) for part in each.get("comparisons", [])), default=0)
        cells = [each["kind"], _name(each["script"]), str(steps)]
        for way in ways:
            word = by[each["script"], way]["verdict"] if (each["script"], way) in by else ""
            cells.append("-" if word == "not written" else word if word in ("equal", "") else f"**{word}**")
        lines.append("| " + " | ".join(cells) + " |")
    for way in ways:
        untried = [_name(each["script"]) for each in runs if (each["script"], way) not in by]
        bare = [_name(each["script"]) for each in runs if by.get((each["script"], way), {}).get("bare")]
        lines += [f"\nNot tried: {WAYS[way]} of {', '.join(untried)}."] if untried else []
        only = "Only the verdict is kept, not what was compared"
        lines += [f"\n{only}: {WAYS[way]} of {', '.join(bare)}."] if bare else []
    return "\n".join([*lines, ""])


def _otherwise(proven: list[Result]) -> str:
    """What is not equal, with its sentence and what reading it has shown."""
    lines = ["## What is not equal, and why", ""]
    for each in proven:
        if each["verdict"] in WORDS[1:]:
            read = READ.get((each["script"], each["way"]), "")
            told = f"**{each['verdict']}**. {_sentence(each['sentence'])}" + (f". {read}" if read else "")
            lines.append(f"- {_name(each['script'])}, {WAYS[each['way']]}: {told}")
    return "\n".join([*lines, ""]) if len(lines) > 2 else ""


def _not_compared(proven: list[Result]) -> str:
    """What a comparison that is equal leaves out, by reason."""
    reasons: dict[str, list[str]] = {}
    for each in proven:
        for part in each.get("comparisons", []) if each["verdict"] == "equal" else []:
            for reason in part.get("not_compared", []):
                told = f"{WAYS[each['way']]}: {_sentence(re.sub(r' ?[(][^)]*:[0-9]+[)]', '', reason))}"
                names = reasons.setdefault(told, [])
                names += [name for name in [_name(each["script"])] if name not in names]
    lines = [f"- {reason} ({', '.join(names)})" for reason, names in sorted(reasons.items())]
    return "\n".join(["## What an `equal` leaves out", "", *lines, ""]) if lines else ""


def _not_written(proven: list[Result]) -> str:
    reasons: dict[str, list[str]] = {}
    for each in proven:
        if each["verdict"] == "not written":
            reasons.setdefault(f"{WAYS[each['way']]}: {_sentence(each['sentence'])}", []).append(_name(each["script"]))
    lines = [f"- {reason} ({', '.join(names)})" for reason, names in sorted(reasons.items())]
    return "\n".join(["## What was not written", "", *lines, ""]) if lines else ""


def _left_out(stopped: list[Result], no_card: list[Result]) -> str:
    lines = ["## Scripts that do not count", ""]
    for each in stopped:
        lines.append(f"- {_name(each['script'])}: the original stops: {_sentence(each['original']['stop'])}")
    if no_card:
        words = "; ".join(f"{_name(each['script'])} ({each['verdict']})" for each in no_card)
        lines.append(f"- Nothing of these is on a card: {words}")
    return "\n".join([*lines, ""]) if len(lines) > 2 else ""


def _repositories(plain: list[Result]) -> str:
    used = {each["script"].partition("/")[0] for each in plain}
    lines = ["## Repositories", "", "| folder | repository | commit |", "|---|---|---|"]
    lines += [f"| {name} | {where} | {commit} |" for name, (where, commit) in REPOSITORIES.items() if name in used]
    return "\n".join([*lines, ""])


_SHORTER: tuple[Callable[[str], str], ...] = (
    lambda name: name.replace("/implementations/", "/").replace("/tutorials/", "/"),
    lambda name: re.sub(r"/(\w+)/\1\.py$", r"/\1", name),
)


def _name(script: str) -> str:
    for shorter in _SHORTER:
        script = shorter(script)
    return script


def _sentence(text: str) -> str:
    """One line that Markdown shows as it is."""
    line = " ".join(text.split())[:300]
    return re.sub(r"([|<*_`])", r"\\\1", line).rstrip(".")
