"""Ports that the tool writes, mistakes planted in them, and what a proof said of them."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.forked import transplt
from tests.planted.mistakes import Mistake
from transplt.project import tree
from transplt.project.options import Options, make_plan

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).parent / "programs"
#: What a port is asked for, by its name.
PORTS: dict[str, dict[str, Any]] = {
    "plain": {}, "distributed": {"entry": "main.py"}, "amp": {"amp": "native"}, "apex": {"amp": "apex"},
}  # fmt: skip
#: So many differences of a comparison are read; behind them nobody looks for a cause.
READ = 3


@dataclass(frozen=True)
class Planted:
    """A pair to prove. `lines` of the migrated program and `lost` of the original are those that a proof may name."""

    original: Path
    migrated: Path
    lines: frozenset[int]
    lost: frozenset[int]


@dataclass(frozen=True)
class Told:
    """What `transplt prove` said: its exit code, its verdict, and the lines of both programs that it named; `first` is
    the place of the difference that stands on top (its line, and that of the original)."""

    code: int
    verdict: str
    sentence: str
    lines: frozenset[int]
    original_lines: frozenset[int]
    output: str
    first: tuple[int | None, int | None] = (None, None)


@functools.cache
def ported(program: Path, port: str) -> dict[str, str]:
    """What the tool writes for a program of one file: the texts of its modules by their names."""
    with tempfile.TemporaryDirectory() as folder:
        target = write_port(program, port, Path(folder))
        return {path.name: path.read_text(encoding="utf-8") for path in sorted(target.glob("*.py"))}


def write_port(program: Path, port: str, folder: Path) -> Path:
    """Migrate a program of one file as `main.py`, out of `folder / "original"`: the folder of the output."""
    source = folder / "original"
    source.mkdir()
    shutil.copy(program, source / "main.py")
    plan = make_plan(Options(source=source, out=folder / "out", jobs=1, page=False, **PORTS[port]))
    tree.migrate_tree(plan)
    return plan.target


def mistaken(mistake: Mistake) -> str:
    """The text of the program with the mistake; ValueError where a text to replace does not stand there once."""
    text = ported(PROGRAMS / f"{mistake.base}.py", mistake.port)["main.py"]
    for old, new in mistake.swaps:
        if text.count(old) != 1:
            raise ValueError(f"{mistake.name}: {text.count(old)} times in the {mistake.port} port: {old!r}")
        text = text.replace(old, new)
    return text


def plant(mistake: Mistake, folder: Path) -> Planted:
    """Write the original and the mistaken port into `folder`."""
    source = PROGRAMS / f"{mistake.base}.py"
    text = mistaken(mistake)
    originals = {"main.py": source.read_text(encoding="utf-8")}
    for name, modules in (("original", originals), ("migrated", {**ported(source, mistake.port), "main.py": text})):
        (folder / name).mkdir()
        for module, content in modules.items():
            (folder / name / module).write_text(content, encoding="utf-8")
    return Planted(
        folder / "original",
        folder / "migrated",
        _found(mistake, mistake.cause, text),
        _found(mistake, mistake.lost, source.read_text(encoding="utf-8")),
    )


def _found(mistake: Mistake, pieces: tuple[str, ...], text: str) -> frozenset[int]:
    lines = text.splitlines()
    found = {piece: {number for number, line in enumerate(lines, 1) if piece in line} for piece in pieces}
    for piece, numbers in found.items():
        if not numbers:
            raise ValueError(f"{mistake.name}: no line with {piece!r}")
    return frozenset().union(*found.values())


def prove(
    original: Path, migrated: Path, folder: Path, nproc: str, *options: str, main: str = "main.py", path: str = ""
) -> Told:
    """Run the command line; its report lies in `folder / "proof.json"`. `options` may end with `--` and arguments.
    `path` is where Python looks for modules first.
    """
    report = folder / "proof.json"
    words = ["prove", str(original), str(migrated), "--main", main, "--nproc", nproc, "--timeout", "60"]
    code, printed, errors = transplt([*words, "--report", str(report), *options], folder, path)
    output = printed + errors
    if not report.is_file():
        raise AssertionError(f"exit code {code} and no report:{os.linesep}{output}")
    return told(json.loads(report.read_text(encoding="utf-8")), code, output)


def told(report: dict[str, Any], code: int, output: str) -> Told:
    """The verdict, and the lines that a reader of the report is sent to: those of the sentences of all comparisons
    that are not equal, and of the first differences."""
    lines: set[int] = set()
    original: set[int] = set()
    for comparison in report["comparisons"]:
        if comparison["verdict"] == "equal":
            continue
        for difference in comparison["differences"][:READ]:
            lines |= {difference["line"]} - {None}
            original |= {difference["original_line"]} - {None}
            _read(f"{difference['what']}; {difference['cause']}", lines, original)
        for sentence in (comparison["sentence"], *comparison["not_compared"]):
            _read(sentence, lines, original)
    named = frozenset(lines), frozenset(original)
    return Told(code, report["verdict"], report["sentence"], *named, output, _first(report))


def _first(report: dict[str, Any]) -> tuple[int | None, int | None]:
    """The first place that a reader is sent to: of the first difference that bears the verdict, or of its sentence."""
    gravest = next((each for each in report["comparisons"] if each["verdict"] == report["verdict"]), None)
    if gravest is None or gravest["verdict"] == "equal":
        return None, None
    if gravest["differences"]:
        return gravest["differences"][0]["line"], gravest["differences"][0]["original_line"]
    place = re.search(r"(original: )?\b[\w./-]+\.py:(\d+)", gravest["sentence"])
    if place is None:
        return None, None
    return (None, int(place[2])) if place[1] else (int(place[2]), None)


def _read(sentence: str, lines: set[int], original: set[int]) -> None:
    original.update(int(number) for number in re.findall(r"original: [\w./-]+\.py:(\d+)", sentence))
    lines.update(int(number) for number in re.findall(r"(?<!original: )\b[\w./-]+\.py:(\d+)", sentence))


def miss(mistake: Mistake, planted: Planted, told: Told) -> str:
    """What a proof missed of a mistake; empty where it is caught."""
    if told.verdict not in mistake.verdicts:
        return f"the verdict is {told.verdict!r}: {told.sentence}"
    if not (told.lines & planted.lines or told.original_lines & planted.lost):
        named = ", ".join(str(line) for line in sorted(told.lines)) or "none"
        wanted = ", ".join(str(line) for line in sorted(planted.lines))
        return f"the lines {named} are named, of {wanted}: {told.sentence}"
    return ""
