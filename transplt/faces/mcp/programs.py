"""The tools that start programs of the person: what a run and a proof answer."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from transplt.base.errors import UsageError
from transplt.faces.mcp.answers import cut
from transplt.faces.mcp.bench import LOOK, Answer, Arguments, Bench, first_lines, read_json, short

#: Seconds of one run, unless others are asked for.
_RUN = 600.0


def _limit(given: Arguments) -> float:
    return float(given.get("seconds", _RUN))


async def run_script(bench: Bench, given: Arguments) -> Answer:
    """What `transplt run` finds of a script."""
    script, seconds = bench.folders.inside(given["script"]), _limit(given)
    nproc = [f"--nproc={given['nproc']}"] if given.get("nproc") else []
    stubs = [f"--stubs={stub_of(bench, each)}" for each in given.get("stubs", ())]
    with tempfile.TemporaryDirectory(prefix="transplt-mcp-") as folder:
        report = Path(folder) / "report.json"
        options = [f"--report={report}", f"--timeout={seconds:g}", *nproc, *stubs]
        ended = await bench.run(["run", *options, "--", str(script), *given.get("args", ())], seconds + LOOK)
        table = read_json(report)
    return {
        "verdict": table["verdict"],
        "sentence": cut(table["sentence"]),
        "reasons": short(table["reasons"]),
        "findings": short(table["findings"]),
        "findings_in_all": len(table["findings"]),
        "printed": first_lines(ended.out.decode("utf-8", "replace")),
    }


async def prove_port(bench: Bench, given: Arguments) -> Answer:
    """What `transplt prove` finds of an original and its port."""
    original, migrated = (bench.folders.inside(given[name]) for name in ("original", "migrated"))
    seconds = _limit(given)
    options = [f"--{name}={given[name]}" for name in ("main", "nproc", "steps") if name in given]
    options += [f"--stubs={stub_of(bench, each)}" for each in given.get("stubs", ())]
    options += ["--compile-mode"] if given.get("compile_mode") else []
    options += [f"--data={each}" for each in given.get("data", ())]
    if any(Path(each).is_absolute() or ".." in Path(each).parts for each in given.get("data", ())):
        raise UsageError("data must be paths inside the project, relative to it")
    with tempfile.TemporaryDirectory(prefix="transplt-mcp-") as folder:
        report = Path(folder) / "proof.json"
        options += [f"--report={report}", f"--timeout={seconds:g}"]
        arguments = ["prove", *options, "--", str(original), str(migrated), *given.get("args", ())]
        await bench.run(arguments, 4 * seconds + LOOK)
        table = read_json(report)
    parts = table["comparisons"]
    differences = [each for part in parts for each in part["differences"]]
    return {
        "verdict": table["verdict"],
        "equal": table["verdict"] == "equal",
        "sentence": cut(table["sentence"]),
        "steps": max((part["steps"] for part in parts), default=0),
        "differences": short(differences),
        "differences_in_all": len(differences),
        "remarks": short([each for part in parts for each in part["remarks"]]),
        "not_compared": short([each for part in parts for each in part["not_compared"]]),
    }


def stub_of(bench: Bench, name: str) -> str:
    """A file in the folders, or the name of a stub that comes with transplt, with a number of pictures or without."""
    return name if re.fullmatch(r"\w+(=\d+)?", name) else str(bench.folders.inside(name))
