"""Takes the edits of a migration back one at a time, runs the script, and counts who notices: run or static check.

usage: python benchmarks/mutations.py ORIGINAL MIGRATED [--json FILE] [--only WORD]

ORIGINAL is a checkout of pytorch/examples at 47d0c2e, MIGRATED its output of `transplt -i`. A mutant is one changed
line put back. The run catches it when its gravest reason is no longer that of the untouched script, the static check
when migrating the file again has something to say about it.
"""

from __future__ import annotations

import argparse
import difflib
import json
import shutil
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
from examples_on_npu import RUNS, Run, execute  # noqa: E402

from transplt.base.settings import Settings  # noqa: E402
from transplt.engine.engine import migrate_source  # noqa: E402

#: Short runs that use most of what was migrated.
NAMES = (
    "mnist", "mnist_rnn", "mnist_forward_forward", "vae", "dcgan", "word_language_model LSTM", "super_resolution",
    "siamese_network", "fast_neural_style", "imagenet, one card", "ddp tutorial multigpu", "ddp tutorial torchrun",
    "ddp example", "tensor_parallel", "sequence_parallel",
)  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One changed place put back: lines [start, end) of the migrated file become `lines`."""

    path: str
    start: int
    end: int
    lines: tuple[str, ...]
    removed: str

    def apply(self, migrated: list[str]) -> str:
        return "".join([*migrated[: self.start], *self.lines, *migrated[self.end :]])


def mutants_of(path: str, original: list[str], migrated: list[str]) -> list[Mutant]:
    """Every changed line of a file as a mutant of its own, where the change keeps the number of lines."""
    found = []
    matcher = difflib.SequenceMatcher(None, original, migrated, autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            continue
        if b - a == d - c:
            found += [Mutant(path, c + i, c + i + 1, (original[a + i],), migrated[c + i].strip()) for i in range(d - c)]
        else:
            found.append(Mutant(path, c, d, tuple(original[a:b]), "".join(migrated[c:d]).strip()))
    return found


def left_over(path: Path) -> tuple[int, int]:
    """What the static check has to say about one file: (edits it would make, findings for a person)."""
    findings = migrate_source(path.read_bytes(), path.name, Settings()).findings
    return sum(f.applied for f in findings), sum(f.open for f in findings)


def try_mutant(run: Run, mutant: Mutant, migrated: Path, scratch: Path) -> dict[str, Any]:
    """Run the script with one edit taken back."""
    copy = scratch / "migrated"
    shutil.rmtree(copy, ignore_errors=True)
    top = Path(run.script).parts[0] if not run.script.startswith("distributed") else str(Path(run.script).parent)
    shutil.copytree(migrated / top, copy / top)
    shutil.copytree(migrated / ".transplt", copy / ".transplt")
    target = copy / mutant.path
    before = left_over(target)
    text = target.read_text(encoding="utf-8").splitlines(keepends=True)
    target.write_text(mutant.apply(text), encoding="utf-8")
    after = left_over(target)
    static = after[0] > before[0] or after[1] > before[1]
    if "import torch_npu" in mutant.removed:  # newer torch loads it by itself
        run = replace(run, options=(*run.options, "--torch-version", "2.4"))
    record = execute(run, copy, None, {}, scratch)
    line = f"{Path(mutant.path).name}:{mutant.start + 1}"
    return {
        "run": run.name,
        "place": f"{mutant.path}:{mutant.start + 1}",
        "taken_back": mutant.removed,
        "verdict": record["verdict"],
        "caught_by_run": not record["as_expected"],
        "caught_by_check": static,
        "line": line,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("original", type=Path)
    parser.add_argument("migrated", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    original, migrated = arguments.original.resolve(), arguments.migrated.resolve()
    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="mutations-") as name:
        scratch = Path(name)
        for run in RUNS:
            if run.name not in NAMES or arguments.only not in run.name:
                continue
            base = execute(run, migrated, None, {}, scratch)
            shutil.rmtree(scratch / run.name.replace(" ", "_").replace(",", ""), ignore_errors=True)
            executed = {line.rpartition(":")[2] for line in base["lines_run"]}  # type: ignore[attr-defined]
            texts = [
                (f / run.script).read_text(encoding="utf-8").splitlines(keepends=True) for f in (original, migrated)
            ]
            for mutant in mutants_of(run.script, *texts):
                result = try_mutant(run, mutant, migrated, scratch)
                shutil.rmtree(scratch / run.name.replace(" ", "_").replace(",", ""), ignore_errors=True)
                lines = range(mutant.start + 1, max(mutant.end, mutant.start + 1) + 1)
                result["executed"] = any(str(n) in executed for n in lines)
                results.append(result)
                marks = "run " * result["caught_by_run"] + "check" * result["caught_by_check"]
                ran = "ran" if result["executed"] else "not run"
                print(f"{marks:9s} {ran:7s} {run.name:28s} {result['line']:24s} {mutant.removed[:50]!r}", flush=True)
    ran = [r for r in results if r["executed"]]
    caught = [r for r in ran if r["caught_by_run"]]
    rest = [r for r in results if not r["caught_by_run"]]
    print(
        f"{len(results)} edits taken back, {len(ran)} of lines that run: {len(caught)} caught by the run; "
        f"of the {len(rest)} not caught, the static check catches {sum(r['caught_by_check'] for r in rest)}"
    )
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
