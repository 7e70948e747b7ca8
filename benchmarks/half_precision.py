"""Writes `--amp native`, `--amp apex` and `--tune all` into public scripts, runs them, and prints the results.

usage: python benchmarks/half_precision.py FOLDER [--only WORD] [--ways native,apex,O1,O2,tune] [--no-run] [--json FILE]

`apex` is what a script gets without --opt-level, O1 and O2 what it gets with it.
FOLDER holds clones of the repositories named in `many_cards_scripts.py`; what is not there is skipped. Each script runs
on the emulated NPU with a few random samples, migrated alone and each of these ways, in one process with the same
seeds: it has to end, every optimizer has to step, and the parameters to end up near those of the migration alone.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from many_cards_scripts import SCRIPTS, Script  # noqa: E402
from small_programs import arguments_of, source_of, with_stubs  # noqa: E402

from tests.ranks import Ranks, run_ranks  # noqa: E402
from tests.test_programs import near  # noqa: E402
from transplt.base.finding import APEX_LEVEL  # noqa: E402
from transplt.project import tree  # noqa: E402
from transplt.project.options import Options, make_plan  # noqa: E402

SECONDS = 60
#: Fixed, since runs of so few steps would be over before a dynamic scale has settled. An overflow is a NaN then.
SCALE = "128"
#: What each way asks for. Ascend apex is for torch 2.1 to 2.4.
WAYS: dict[str, dict[str, str]] = {
    "native": {"amp": "native", "loss_scale": SCALE},
    "apex": {"amp": "apex", "loss_scale": SCALE, "torch_version": "2.1"},
    "O1": {"amp": "apex", "opt_level": "O1", "loss_scale": SCALE, "torch_version": "2.1"},
    "O2": {"amp": "apex", "opt_level": "O2", "loss_scale": SCALE, "torch_version": "2.1"},
    "tune": {"tune": "all"},
}
SEEDS = "\nimport random as _random\nimport numpy as _numpy\n_random.seed(0)\n_numpy.random.seed(0)\n"


@dataclass
class Outcome:
    """What became of a script one way. `faults`: what is wrong, in sentences."""

    script: str
    way: str
    verdict: str
    reason: str = ""
    steps: str = "-"
    faults: list[str] = field(default_factory=list)

    def row(self) -> str:
        result = "; ".join(fault.splitlines()[0] for fault in self.faults) or "right"
        cells = (self.script, self.way, self.verdict, self.steps, result, self.reason)
        return "| " + " | ".join(cell.replace("\n", " ").replace("|", "/") or "-" for cell in cells) + " |"


HEAD = "| script | way | verdict | steps of each optimizer | result | reason |\n|---|---|---|---|---|---|"


def migrate(source: Path, place: Path, **asked: str) -> tuple[Path, list[str], dict[str, bytes]]:
    """Migrate the project into `place`; its folder, what is said against it, and its Python files."""
    options = Options(source=source, out=place, jobs=0, page=False, **asked)  # type: ignore[arg-type]
    result = tree.migrate_tree(make_plan(options))
    folder = next(place.glob("*_msft"))
    codes = ("NPU742", "NPU743", "NPU75", APEX_LEVEL)
    findings = [finding for file in result.files for finding in file.findings]
    said = [finding.message for finding in findings if not finding.applied and finding.code.startswith(codes)]
    return folder, said, {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.py")}


def run(script: Script, folder: Path) -> Ranks:
    """Run what was written, with the stubs of the list beside it."""
    here = (folder / script.main).parent
    with_stubs(here, script)
    with open(here / "torchvision" / "__init__.py", "a", encoding="utf-8") as stub:
        stub.write(SEEDS)
    return run_ranks(here, Path(script.main).name, arguments_of(script), plain=True, timeout=SECONDS)


def judge(outcome: Outcome, plain: Ranks, changed: Ranks) -> None:
    """Compare a run with that of the migration alone."""
    if changed.failure:
        outcome.faults.append(changed.failure.splitlines()[-1] if changed.failure else "")
        return
    mine, theirs = plain.processes[0], changed.processes[0]
    if not plain.stepped:
        outcome.faults.append("no optimizer takes a step, so nothing is shown")
        return
    shown = []
    for number in sorted(mine.steps):
        wanted, taken = len(mine.steps[number]), len(theirs.steps.get(number, []))
        shown.append(f"{taken} of {wanted}")
        fewer = taken and outcome.way == "tune"  # drop-last takes fewer, and none of a set smaller than a batch
        if taken != wanted and not fewer:
            outcome.faults.append(f"optimizer {number} takes {taken} of {wanted} steps")
    outcome.steps = ", ".join(shown)
    if outcome.way != "tune" or mine.steps.keys() == theirs.steps.keys():
        outcome.faults += near(plain, changed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="scripts whose name this expression is found in")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--no-run", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    print(HEAD, flush=True)
    outcomes: list[Outcome] = []
    for script in SCRIPTS:
        if not re.search(options.only, script.name) or not (options.folder / script.project / script.main).is_file():
            continue
        with tempfile.TemporaryDirectory(prefix="half-precision-", ignore_cleanup_errors=True) as temporary:
            place = Path(temporary)
            source = source_of(script, options.folder, place)
            runs: dict[str, Ranks] = {}
            for way in options.ways.split(","):
                outcome = one(script, way, source, place, runs, runnable=script.runs and not options.no_run)
                outcomes.append(outcome)
                print(outcome.row(), flush=True)
    if options.json:
        options.json.write_text(json.dumps([asdict(each) for each in outcomes], indent=1), encoding="utf-8")
    return 1 if any(outcome.faults for outcome in outcomes) else 0


def one(script: Script, way: str, source: Path, place: Path, runs: dict[str, Ranks], *, runnable: bool) -> Outcome:
    """Write a script one way, and run it beside the migration alone for the same torch."""
    asked = WAYS[way]
    version = {name: value for name, value in asked.items() if name == "torch_version"}
    alone = place / f"alone{version.get('torch_version', '')}"
    if not alone.exists():
        alone.mkdir()
        migrate(source, alone, **version)
    plain = next(alone.glob("*_msft"))
    folder, said, files = migrate(source, place / way, **asked)
    changed = any(files[name] != (plain / name).read_bytes() for name in files)
    outcome = Outcome(script.name, way, "written" if changed else "left", "; ".join(said[:2]))
    if not changed and not said and way != "tune":
        outcome.faults.append("nothing is written, and nothing is said")
    if changed and runnable:
        if alone.name not in runs:
            copied = place / f"run-{alone.name}" / "a" / "b"
            shutil.copytree(plain, copied)
            runs[alone.name] = run(script, copied)
        if runs[alone.name].failure:
            outcome.faults.append(f"does not run as it is: {runs[alone.name].failure.splitlines()[-1]}")
            return outcome
        copied = place / f"run-{way}" / "a" / "b"
        shutil.copytree(folder, copied)
        judge(outcome, runs[alone.name], run(script, copied))
    return outcome


if __name__ == "__main__":
    sys.exit(main())
