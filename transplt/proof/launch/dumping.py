"""What `--dump` and `--fault` of `transplt run` ask for."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from transplt.base.errors import shown
from transplt.base.render.cell import many
from transplt.proof.launch.options import Dump, UsageError

#: What a fault does to the operator it is planted in; those that take a value, with the one they take by default.
FAULTS = {
    "scale": "its results are multiplied by VALUE (1.02)",
    "sign": "its results are negated",
    "bf16": "its results are rounded to bfloat16 and back",
    "nan": "the first element of its results is NaN",
    "eps": "it computes with an eps of VALUE (0.01)",
    "reduce": "it takes the sum instead of the mean, and the other way round",
    "drop": "it is skipped: its first argument is the result",
    "extra": "an operator VALUE (abs) of torch follows it",
}
_FAULT = re.compile(r"(?P<op>[A-Za-z_][\w.]*)(?:@(?P<rank>\d+))?=(?P<kind>\w+)(?::(?P<value>[\w.+-]+))?$")
_NUMBERS = ("scale", "eps")


def check(folder: Path) -> None:
    """UsageError where `folder` cannot take a dump."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--dump {shown(folder)}: is not a folder.")
    if folder.is_dir() and any(folder.iterdir()):
        raise UsageError(f"--dump {shown(folder)}: is not empty; a dump needs an empty folder.")


def folder_summary(folder: Path) -> str:
    """What lies in the folder of a dump, for the end of a run."""
    parts = [path.parent for path in folder.glob("step*/rank*/dump.json")]
    steps, ranks = {path.parent.name for path in parts}, {path.name for path in parts}
    if not parts:
        return f"nothing was dumped to {shown(folder)}"
    return f"{many(len(steps), 'step')} of {many(len(ranks), 'rank')} dumped to {shown(folder)}"


def read_fault(text: str) -> tuple[str, str, str, int | None]:
    """(operator, kind, value, rank) of `linear=scale:1.02`, `Functional.relu.3@1=nan`. UsageError for anything else."""
    match = _FAULT.match(text)
    if match is None or match["kind"] not in FAULTS:
        kinds = ", ".join(FAULTS)
        raise UsageError(f"--fault {shown(text)}: is not OPERATOR[.CALL][@RANK]=KIND[:VALUE] with one of {kinds}.")
    kind, value = match["kind"], match["value"] or ""
    if value and kind not in (*_NUMBERS, "extra"):
        raise UsageError(f"--fault {shown(text)}: {kind} takes no value.")
    if value and kind in _NUMBERS:
        try:
            float(value)
        except ValueError:
            raise UsageError(f"--fault {shown(text)}: {shown(value)} is not a number.") from None
    return match["op"], kind, value, int(match["rank"]) if match["rank"] else None


def read_steps(text: str) -> tuple[int, ...]:
    """(0, 2, 3, 4) of `0,2-4`; () of "". UsageError for anything else."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if first > last or last - first > 100_000:
            raise UsageError(f"{shown(text)} does not name steps: write 0,2-4 (the first is 0).")
        found.update(range(first, last + 1))
    return tuple(sorted(found))


def asked_for(
    folder: Path | None, task: str, level: str, form: str, steps: str, seed: int, faults: Iterable[str]
) -> Dump | None:
    """The options as one; None where neither a dump nor a fault is asked for. UsageError for what cannot be."""
    planted = tuple(read_fault(each) for each in faults)
    if folder is None and not planted:
        return None
    if folder is not None:
        check(folder)
    return Dump(folder, task, level, form, read_steps(steps), seed, planted)
