"""Records public scripts with msprobe (`transplt instrument`), and compares the dumps.

usage: python benchmarks/instrumented_scripts.py FOLDER [--only WORD] [--json FILE] [--page] [--keep FOLDER]

FOLDER holds clones of the repositories in `instrumented_list.py`; what is not there is skipped. The original, and what
a migration makes of it, become probe copies. The first runs on a stand-in for CUDA, which computes on the CPU, the
second twice on the emulated NPU. Two dumps of the second have to agree everywhere; what the CPU's and the NPU's say of
each other is the verdict. Needs mindstudio-probe; writes the table of docs/reference/instrumented.md. With `--json`
what was found is kept in FILE, script by script, beside what stands there; `--page` only writes the table from it.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from instrumented_list import LISTED, REPOSITORIES  # noqa: E402
from many_cards_scripts import Script  # noqa: E402
from small_programs import arguments_of, source_of, with_stubs  # noqa: E402

from transplt.precision.compare import Comparison, compare  # noqa: E402
from transplt.precision.dumps import open_dump  # noqa: E402
from transplt.precision.first_line import sentence  # noqa: E402
from transplt.precision.instrument.project import write_copy  # noqa: E402
from transplt.precision.instrument.script import Probing  # noqa: E402
from transplt.project.options import Options, make_plan  # noqa: E402
from transplt.project.tree import migrate_tree  # noqa: E402

PAGE = HERE.parent / "docs" / "reference" / "instrumented.md"
BEGIN, END = "<!-- tried: benchmarks/instrumented_scripts.py -->\n", "<!-- /tried -->\n"
STEPS = (0, 1, 2)
SECONDS = 400
#: Stubs of packages that msprobe needs, too: where the package is there, the script gets that.
REAL = ("PIL", "requests", "six", "tqdm")


def migrated(source: Path, place: Path) -> Path:
    options = Options(source=source, out=place, jobs=0, page=False, analysis=False)
    migrate_tree(make_plan(options))
    return next(place.glob("*_msft"))


def run(copy: Path, script: Script, host: str, dump: Path) -> str:
    """Start a probe copy; why it did not end well, or nothing."""
    main = copy / script.main
    environment = {
        **os.environ, "TRANSPLT_PROBE_DUMP": str(dump), "TRANSPLT_PROBE_END": "1",
        "OMP_NUM_THREADS": "1", "TORCHDYNAMO_DISABLE": "1",
        "PYTHONPATH": os.pathsep.join([str(HERE.parent), str(copy)]), "PYTHONHASHSEED": "1234",
    }  # fmt: skip
    # What a person would set who looks for what computes otherwise: no stop at what an NPU does not have.
    options = ["--host", "cuda"] if host == "cuda" else ["--cuda", "off", "--cpu-fallback", "ignore"]
    command = [sys.executable, "-m", "transplt", "run", *options, main.name, *arguments_of(script, batch=4)]
    done = subprocess.run(
        command, cwd=main.parent, env=environment, capture_output=True, text=True, timeout=SECONDS, errors="replace",
        check=False,
    )  # fmt: skip
    dump.with_suffix(".log").write_text(done.stdout + done.stderr, encoding="utf-8")
    lines = [line for line in done.stderr.splitlines() if line.startswith("transplt run:")]
    if not any(dump.glob("step*/*/dump.json")):
        return "nothing was recorded: " + " | ".join((*lines, *done.stderr.splitlines()[-3:]))
    return lines[0] if lines and ": stops" in lines[0] else ""


def compared(one: Path, other: Path) -> Comparison:
    return compare(open_dump(str(one)), open_dump(str(other)), jobs=1)


def tried(script: Script, corpus: Path, place: Path) -> dict[str, Any]:
    """Record one script on both hosts."""
    begun = time.perf_counter()
    source = place / "source" / Path(script.project).name
    if (corpus / script.project / script.main).is_file():
        source = source_of(script, corpus, place)
    else:  # what `prepare` writes: the program is started by an entry point of its package
        shutil.copytree(corpus / script.project, source)
    folder = migrated(source, place / "plain")
    copies: dict[str, Path] = {}
    left: list[str] = []
    for host, each in (("cuda", source), ("npu", folder)):
        beside = (each / script.main).parent
        with_stubs(beside, script)
        for name in REAL:
            if importlib.util.find_spec(name) is not None and name not in script.stubs:
                shutil.rmtree(beside / name, ignore_errors=True)
        copy = write_copy(each, place / f"probe_{host}", script.main, Probing(steps=STEPS))
        copies[host] = copy.folder
        left = [str(one) for one in copy.probed.left if not one.informs]
    told: dict[str, Any] = {"script": script.name, "left": left}
    for host, name in (("cuda", "cpu"), ("npu", "npu"), ("npu", "again")):
        why = run(copies[host], script, host, place / name)
        if why and name != "again":
            told[f"stop {name}"] = why
        if not any((place / name).glob("step*/*/dump.json")):
            return {**told, "verdict": f"{name}: {why}", "twice": "", "rows": 0, "steps": 0}
    twice, sides = compared(place / "npu", place / "again"), compared(place / "npu", place / "cpu")
    return {
        **told,
        "steps": len(twice.steps),
        "rows": sum(each.operators for each in twice.compared),
        "twice": "equal" if twice.same else sentence(twice),
        "verdict": "equal" if sides.same else sentence(sides),
        "seconds": round(time.perf_counter() - begun),
    }


def table(told: list[dict[str, Any]]) -> str:
    lines = ["| script | commit | steps | rows | two runs | CPU against emulated NPU | left |"]
    lines.append("|---|---|---:|---:|---|---|---:|")
    for each in told:
        folder, _, path = each["script"].partition("/")
        name, commit = REPOSITORIES[folder]
        cells = (f"{name} {path}", commit, each["steps"], each["rows"], each["twice"], each["verdict"])
        lines.append("| " + " | ".join(str(cell).replace("|", "/") for cell in cells) + f" | {len(each['left'])} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="scripts whose name this expression is found in")
    parser.add_argument("--json", type=Path, help="keep here what was found")
    parser.add_argument("--page", action="store_true", help="run nothing, write the table")
    parser.add_argument("--keep", type=Path, help="keep copies and dumps here")
    asked = parser.parse_args()
    kept = asked.json is not None and asked.json.is_file()
    told = {each["script"]: each for each in json.loads(asked.json.read_text(encoding="utf-8"))} if kept else {}
    for script in [] if asked.page else LISTED:
        if not re.search(asked.only, script.name) or not (asked.folder / script.project).is_dir():
            continue
        scratch = tempfile.TemporaryDirectory(prefix="probe-", ignore_cleanup_errors=True)
        with scratch as place:
            here = Path(place) if asked.keep is None else asked.keep.resolve() / script.name.replace("/", "_")
            if asked.keep is not None:
                shutil.rmtree(here, ignore_errors=True)
                here.mkdir(parents=True)
            try:
                told[script.name] = tried(script, asked.folder, here)
            except Exception as error:  # one script must not end the others
                why = f"{type(error).__name__}: {error}"
                told[script.name] = {
                    "script": script.name, "left": [], "verdict": why, "twice": "", "rows": 0, "steps": 0,
                }  # fmt: skip
        print(json.dumps(told[script.name]), flush=True)
        if asked.json is not None:
            asked.json.write_text(json.dumps([*told.values()], indent=1) + "\n", encoding="utf-8")
    every = [told[script.name] for script in LISTED if script.name in told]
    if asked.page or not asked.only:
        text = PAGE.read_text(encoding="utf-8")
        before, after = text.partition(BEGIN)[0], text.partition(END)[2]
        with_what = f"With msprobe {metadata.version('mindstudio-probe')} and torch {metadata.version('torch')}:\n\n"
        PAGE.write_text(before + BEGIN + with_what + table(every) + END + after, encoding="utf-8")
    return 0 if all(each["twice"] == "equal" for each in every) else 1


if __name__ == "__main__":
    sys.exit(main())
