"""Faults planted in recorded runs: what `transplt compare` says of them, and what msprobe's own comparison says.

usage: python -m benchmarks.planted_faults [--only WORD] [--msprobe VERSION=PYTHON]... [--folder DIR] [--page]

The faults and programs are those of tests/precision/planted.py. Each is recorded on the emulated NPU and, without the
fault, on the stand-in for CUDA; with `--msprobe`, by that version of mindstudio-probe on the CPU as well, which then
compares its dumps, too (PYTHON is an interpreter that has it and torch). What was found goes into
docs/reference/planted.json, and `--page` only writes docs/reference/planted.md from that. What lies in DIR is not
recorded again.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from benchmarks.planted_page import page  # noqa: E402
from tests.precision.planted import EQUAL, PLANTED, Equal, Planted  # noqa: E402
from tests.precision.planting import compared, missed, program, record, without_elements  # noqa: E402
from transplt.base.errors import UsageError  # noqa: E402
from transplt.precision.first_line import sentence  # noqa: E402
from transplt.precision.instrument.project import PROBES  # noqa: E402
from transplt.precision.instrument.script import Probing, instrument  # noqa: E402
from transplt.proof.launch.dumping import read_fault  # noqa: E402
from transplt.proof.launch.warm import Warm  # noqa: E402

RESULT = ROOT / "docs" / "reference" / "planted.json"
PAGE = RESULT.with_suffix(".md")
TASKS = ("statistics", "tensor")


def slug(text: str) -> str:
    return re.sub(r"\W+", "_", text)


def two_tasks(folder: Path) -> None:
    """`folder/dump` with elements, and `folder/statistics` without; the first also by the name of its task."""
    (folder / "dump").rename(folder / "tensor")
    for path in (folder / "tensor").rglob("dump.json"):
        path.write_text(path.read_text().replace(f"{folder}/dump/", f"{folder}/tensor/"))
    without_elements(folder / "tensor", folder / "statistics")


def once(place: Path, *args: Any, **kwargs: Any) -> None:
    """Record a run, unless it lies there."""
    if not (place / "statistics").is_dir():
        record(place, *args, **kwargs)
        two_tasks(place)


def told(planted: Planted, npu: Path, bench: Path, elsewhere: bool = False) -> dict[str, Any]:
    """What transplt says of one fault."""
    try:
        found = compared(npu, bench)
    except UsageError as error:
        return {"missed": str(error), "said": str(error), "step": 0, "rows": []}
    rows: list[str] = []
    if found.first is not None and found.first.verdict is not None:
        each = found.first.verdict.match
        rows = [row.name for row in (each.npu, each.bench) if row is not None]
        part = (npu if each.npu is not None else bench) / f"step{found.first.step}"
        for path in part.glob("*/construct.json"):
            parent = json.loads(path.read_text()).get(rows[0])
            parent = parent[0] if isinstance(parent, list) and parent else parent
            rows += [parent] if isinstance(parent, str) else []
    step = found.first.step if found.first is not None else 0
    why = brief(missed(planted, found, elsewhere))
    return {"missed": why, "said": brief(sentence(found)), "step": step, "rows": rows}


def brief(text: str) -> str:
    """Without the folders of this machine."""
    return re.sub(r"called at \S*/(\w+\.py)", r"called at \1", text)


def on_the_emulator(folder: Path, faults: Sequence[Planted], pairs: Sequence[Equal]) -> tuple[list[Any], list[Any]]:
    """Record and compare all with `transplt run --dump`."""
    results, equal = [], []
    with Warm() as warm:
        benches: set[str] = set()
        for each in faults:
            bench = folder / each.kind / "bench"
            if each.kind not in benches:
                once(bench, each.kind, "cuda", warm, nproc=each.nproc)
                benches.add(each.kind)
            place = folder / each.kind / slug(each.name)
            once(place, each.kind, "npu", warm, each.swaps, each.fault, each.nproc)
            said = {task: told(each, place / task, bench / task) for task in TASKS}
            results.append({"kind": each.kind, "name": each.name, "transplt": said})
            print(each.kind, each.name, *(said[task]["missed"] or "named" for task in TASKS), sep=" | ", flush=True)
        for pair in pairs:
            place = folder / "equal" / slug(f"{pair.kind} {pair.name}")
            once(place / "npu", pair.kind, pair.npu, warm, pair.swaps, nproc=pair.nproc[0])
            once(place / "bench", pair.kind, pair.bench, warm, nproc=pair.nproc[1])
            said_of = {}
            for task in TASKS:
                found = compared(place / "npu" / task, place / "bench" / task)
                said_of[task] = "" if found.same else brief(sentence(found))
            equal.append({"kind": pair.kind, "name": pair.name, "transplt": said_of})
            print(pair.kind, pair.name, *(said_of[task] or "equal" for task in TASKS), sep=" | ", flush=True)
    return results, equal


def probed(place: Path, kind: str, swaps: Any, fault: str, nproc: int, steps: int) -> dict[str, Any]:
    """The probe copy of a program for the CPU, and the job that runs it."""
    if (place / "statistics").is_dir():
        return {}
    place.mkdir(parents=True, exist_ok=True)
    text = program(kind, "cpu", swaps).encode()
    copy = instrument({f"{kind}.py": text}, f"{kind}.py", Probing(task="tensor", steps=tuple(range(steps))))
    for name, data in copy.files.items():
        (place / name).write_bytes(data)
    for probe in PROBES:
        shutil.copy(probe, place)
    planted = list(read_fault(fault)) if fault else None
    return {"folder": str(place), "script": f"{kind}.py", "nproc": nproc, "fault": planted}


def jobs(python: str, folder: Path, recorded: list[Any], comparisons: list[Any]) -> list[Any]:
    """Let an interpreter with msprobe do its part."""
    path = folder / f"jobs{len(comparisons)}.json"
    path.write_text(json.dumps({"record": recorded, "compare": comparisons}))
    script = str(Path(__file__).with_name("planted_msprobe.py"))
    subprocess.run([python, script, str(path)], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return [json.loads(line) for line in Path(f"{path}.done").read_text().splitlines()]


def by_msprobe(version: str, python: str, folder: Path, results: list[Any], faults: Sequence[Planted]) -> None:
    """Record all with a version of msprobe, and compare by it and by transplt."""
    names = {(each["kind"], each["name"]): each for each in results}
    runs = [probed(folder / kind / "bench", kind, (), "", 2 if kind == "ranks" else 0, 3)
            for kind in dict.fromkeys(each.kind for each in faults)]  # fmt: skip
    # Of each as many steps as it takes until it shows.
    runs += [
        probed(folder / each.kind / slug(each.name), each.kind, each.swaps, each.fault, each.nproc,
               1 + names[each.kind, each.name]["transplt"]["tensor"]["step"] + ("gradients" in each.how))
        for each in faults
    ]  # fmt: skip
    runs = [each for each in runs if each]
    for done in jobs(python, folder, runs, []) if runs else []:
        if any(done["codes"]):
            print(version, done["folder"], "failed", done["codes"])
        elif list(Path(done["folder"]).glob("dump/step*")):
            two_tasks(Path(done["folder"]))
    asked = []
    for each in faults:
        place, bench = folder / each.kind / slug(each.name), folder / each.kind / "bench"
        result = names[each.kind, each.name]
        result[version] = {}
        if not (place / "tensor").is_dir() or not (bench / "tensor").is_dir():
            continue
        result[f"transplt on {version}"] = {task: told(each, place / task, bench / task, True) for task in TASKS}
        step = result[f"transplt on {version}"]["tensor"]["step"]
        asked += [
            {
                "npu": str(place / task), "bench": str(bench / task), "step": step, "search": search,
                "out": str(folder / "out" / each.kind / slug(each.name) / (task + "_search" * search)),
                "of": [each.kind, each.name, task],
            }
            for task, search in (("statistics", False), ("tensor", False), ("tensor", True))
            if not search or not version.startswith("8.")
        ]  # fmt: skip
    for done in jobs(python, folder, [], asked):
        kind, name, task = done["of"]
        rows = names[kind, name][f"transplt on {version}"][task]["rows"]
        fault = next(each for each in faults if (each.kind, each.name) == (kind, name))
        key = f"{task} search" if done["search"] else task
        names[kind, name][version][key] = verdict_of(done, rows, fault)


def verdict_of(done: dict[str, Any], rows: Sequence[str], fault: Planted) -> dict[str, str]:
    """`named` where the first row that msprobe calls wrong is of the operator (or of the module around it), `later`
    where such a row comes behind others, `others` where only other rows are, `nothing`, or `fails`."""
    if done["codes"] == [3]:
        return {"verdict": "", "first": ""}
    if any(done["codes"]):
        said = [line for line in done["log"].splitlines() if "ERROR" in line or "Error" in line or "Exception" in line]
        return {"verdict": "fails", "first": (said or ["?"])[-1][-120:]}
    structural = any(word in fault.how for word in ("missing", "only on", "in place"))
    wanted = [*(part.replace(" ", ".") for part in fault.names.split("|")), *rows]
    found = [name for name, kind in done["blamed"] if kind != "N/A" or structural]
    found = [name.rpartition(" ")[2] for name in found]
    right = [any(name == each or name.startswith(f"{each}.") for each in wanted) for name in found]
    verdict = "nothing" if not found else "named" if right[0] else "later" if any(right) else "others"
    return {"verdict": verdict, "first": found[0] if found else ""}


def across(folder: Path, versions: Sequence[tuple[str, str]], kinds: Sequence[str]) -> list[Any]:
    """Two versions of msprobe that recorded the same run, compared by transplt and by each of the two."""
    found: list[Any] = []
    asked: list[dict[str, Any]] = []
    for kind in kinds:
        for task in TASKS:
            npu, bench = (folder / version / kind / "bench" / task for version, _ in versions)
            if not (npu.is_dir() and bench.is_dir()):
                continue
            comparison = compared(npu, bench)
            said = "" if comparison.same else brief(sentence(comparison))
            found.append({"kind": kind, "task": task, "said": {"transplt": said}})
            asked.append({"npu": str(npu), "bench": str(bench), "step": 0, "search": False})
    for version, python in versions:
        place = folder / "across" / version
        place.mkdir(parents=True)
        own = [{**each, "out": str(place / str(number))} for number, each in enumerate(asked)]
        for each, done in zip(found, jobs(python, place, [], own), strict=True):
            wrong = [name for name, verdict in done["blamed"] if verdict != "N/A"]
            lacks = sum(verdict == "N/A" for _, verdict in done["blamed"])
            text = f"`{wrong[0]}` and {len(wrong) - 1} others" if wrong else f"{lacks} rows without a partner"
            each["said"][version] = "fails" if any(done["codes"]) else text if wrong or lacks else ""
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--msprobe", action="append", default=[], metavar="VERSION=PYTHON")
    parser.add_argument("--every", action="append", default=[], metavar="VERSION=N", help="so many faults of that only")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--page", action="store_true")
    given = parser.parse_args()
    if not given.page:
        folder = given.folder or Path(tempfile.mkdtemp(prefix="planted-"))
        faults = [each for each in PLANTED if given.only in f"{each.kind} {each.name}"]
        pairs = [each for each in EQUAL if given.only in f"{each.kind} {each.name}"]
        results, equal = on_the_emulator(folder / "emulator", faults, pairs)
        versions = [tuple(each.split("=", 1)) for each in given.msprobe]
        with ThreadPoolExecutor() as pool:
            for version, _ in versions:
                (folder / version).mkdir(exist_ok=True)
            every = {version: int(number) for version, number in (each.split("=") for each in given.every)}
            begun = []
            for version, python in versions:
                kept = [
                    each
                    for number, each in enumerate(faults)
                    if number % every.get(version, 1) == 0
                    or (folder / version / each.kind / slug(each.name) / "statistics").is_dir()
                ]
                begun.append(pool.submit(by_msprobe, version, python, folder / version, results, kept))
            for each in begun:
                each.result()
        kinds = list(dict.fromkeys(each.kind for each in faults))
        crossed = across(folder, versions, kinds) if len(versions) == 2 else []
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        import datetime

        document = {
            "date": datetime.date.today().isoformat(), "seconds": round(used.ru_utime + used.ru_stime),
            "versions": [version for version, _ in versions], "faults": results, "equal": equal, "across": crossed,
        }  # fmt: skip
        if given.folder is None:
            shutil.rmtree(folder)
        target = RESULT if not given.only else Path("planted.json")
        target.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        if given.only:
            return
    PAGE.write_text(page(json.loads(RESULT.read_text())), encoding="utf-8")


if __name__ == "__main__":
    main()
