"""Makes single-card scripts of public repositories distributed, runs them, and prints what became of each.

usage: python benchmarks/many_cards.py FOLDER [--only WORD] [--no-run] [--starts] [--keep FOLDER] [--json FILE]

FOLDER holds clones of the repositories named in `many_cards_scripts.py`; what is not there is skipped. Each script runs
on the emulated NPU with a few random samples (`benchmarks/stubs` and the emulator's
own stub of torchvision stand in for packages): the ranks
must hold the same parameters after each step, and, where the script draws nothing by itself, those of one process with
the same global batch. `--starts` starts each with one, two and four processes, from small seeds and from one of 2**63
and more, and looks at the ranks alone. Exit code 1 when anything is otherwise than the list says.
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

from tests.ranks import differences, run_ranks  # noqa: E402
from transplt.project import tree  # noqa: E402
from transplt.project.options import Options, make_plan  # noqa: E402

NAMED = "was not made distributed: "
SECONDS = 180
SEEDS = (0, 2**63 + 7)


@dataclass
class Outcome:
    """What became of a script. `exchange`: by the wrapper or by averaging. `faults`: what is wrong, in sentences.

    `whole`, `fetched`: a finding says that every rank reads all the data, that every rank downloads at once.
    """

    script: Script
    verdict: str
    exchange: str = ""
    reason: str = ""
    equal: str = "-"
    as_one: str = "-"
    whole: bool = False
    fetched: bool = False
    faults: list[str] = field(default_factory=list)

    def row(self) -> str:
        words = ("every rank reads all the data" * self.whole, "every rank downloads" * self.fetched, self.script.note)
        said = self.reason or "; ".join(word for word in words if word)
        cells = (self.script.kind, self.script.name, self.verdict, self.exchange, self.equal, self.as_one, said)
        return "| " + " | ".join(cell or "-" for cell in cells) + " |"


HEAD = "| kind | script | verdict | gradients | two ranks equal | as one process | remarks |\n" + "|---" * 7 + "|"


def migrate(script: Script, corpus: Path, place: Path) -> tuple[Path, Outcome]:
    """Write the script into `place`; the folder of what was written, and the verdict."""
    source = source_of(script, corpus, place)
    result = tree.migrate_tree(
        make_plan(Options(source=source, out=place / "out", jobs=0, page=False, entry=script.main))
    )
    folder = next((place / "out").glob("*_msft"))
    findings = [finding for file in result.files for finding in file.findings]
    reasons = [finding.message.partition(NAMED)[2] for finding in findings if NAMED in finding.message]
    codes = {finding.code for finding in findings}
    written = [path.read_text(encoding="utf-8", errors="replace") for path in folder.rglob("*.py")]
    averages = any("npu_port.average(" in text for text in written)
    if reasons:
        return folder, Outcome(script, "refused", reason=reasons[0])
    if codes & {"NPU330", "NPU331"}:
        return folder, Outcome(script, "left")
    exchange = "averaged" if averages else "wrapper"
    return folder, Outcome(script, "converted", exchange, whole="NPU340" in codes, fetched="NPU344" in codes)


def _copied(script: Script, folder: Path, name: str) -> Path:
    """The folder of the main file in a copy of what was written, with what stands in for packages."""
    place = folder.with_name(name) / "a" / "b"
    shutil.copytree(folder, place, ignore=shutil.ignore_patterns(".transplt", "change_list.csv"))
    here = (place / script.main).parent
    with_stubs(here, script)
    return here


def run(script: Script, folder: Path, outcome: Outcome) -> None:
    """Run what was written with two processes and with one."""
    ranks = {}
    for world, plain in ((2, False), (2, True), (1, True)) if script.same or script.even else ((2, False),):
        here = _copied(script, folder, f"run{world}{plain}")
        times = 2 if (world, plain) == (1, True) and not outcome.whole else 1
        arguments = arguments_of(script, 4 * times)
        told = any("{batch}" in each for each in script.arguments)
        ranks[world, plain] = run_ranks(
            here,
            Path(script.main).name,
            arguments,
            world=world,
            plain=plain,
            even=plain and script.even,
            batch_times=1 if told else times,
            timeout=SECONDS,
        )
        if found := ranks[world, plain].faults():
            outcome.faults += found
            outcome.equal = "no"
            return
    two = ranks[2, False]
    outcome.equal = "yes" if two.stepped else "no step"
    if not two.stepped:
        outcome.faults.append("no optimizer took a step")
    several = two.written_by_several()
    if several and not outcome.fetched:
        outcome.faults.append(f"written by both ranks: {', '.join(several[:5])}")
    if script.same or script.even:
        found = differences(ranks[1, True], ranks[2, True])
        outcome.as_one = "no" if found else "yes, evenly" if script.even else "yes"
        outcome.faults += found


def start(script: Script, folder: Path, outcome: Outcome) -> None:
    """Start what was written with one, two and four processes, from two seeds each."""
    for world, seed in ((world, seed) for world in (1, 2, 4) for seed in SEEDS):
        here = _copied(script, folder, f"start{world}-{seed}")
        ranks = run_ranks(
            here, Path(script.main).name, arguments_of(script, 4), world=world, timeout=SECONDS, seed=seed
        )
        found = ranks.faults() or ([] if ranks.stepped else ["no optimizer took a step"])
        several = ranks.written_by_several()
        found += [f"written by several ranks: {', '.join(several[:5])}"] if several and not outcome.fetched else []
        outcome.faults += [f"{world} processes, seed {seed}: {fault}" for fault in found]
    outcome.equal = "no" if outcome.faults else "yes"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="scripts whose name this expression is found in")
    parser.add_argument("--no-run", action="store_true")
    parser.add_argument("--starts", action="store_true", help="with one, two and four processes, from two seeds each")
    parser.add_argument("--keep", type=Path, help="keep what was written here")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    print(HEAD, flush=True)
    outcomes = []
    for script in SCRIPTS:
        if not re.search(options.only, script.name):
            continue
        if not (options.folder / script.project / script.main).is_file():
            print(f"skipped, not there: {script.name}", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory(prefix="many-cards-", ignore_cleanup_errors=True) as temporary:
            folder, outcome = migrate(script, options.folder, Path(temporary))
            if outcome.verdict != script.expected or script.reason not in outcome.reason:
                outcome.faults.append(f"{outcome.verdict} ({outcome.reason}), and not {script.expected}")
            elif outcome.verdict == "converted" and script.runs and not options.no_run:
                (start if options.starts else run)(script, folder, outcome)
            if options.keep:
                shutil.copytree(folder, options.keep / script.name.replace("/", "_"), dirs_exist_ok=True)
        outcomes.append(outcome)
        print(outcome.row(), flush=True)
        for fault in outcome.faults:
            print(f"    {script.name}: {fault}", file=sys.stderr, flush=True)
    if options.json:
        options.json.write_text(json.dumps([asdict(each) for each in outcomes], indent=1), encoding="utf-8")
    return 1 if any(outcome.faults for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
