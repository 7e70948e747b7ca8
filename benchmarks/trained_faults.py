"""Faults in front of the last backward pass and behind it: what `transplt compare` and `watch` say of recorded runs.

usage: python -m benchmarks.trained_faults [--set mended|aside|all|causes] [--only WORD] [--msprobe PYTHON]
       [--folder DIR]

The faults, pairs and programs are those of tests/precision/trained.py, of the set `causes` those of causes.py there.
Each is recorded by `transplt run --dump` on the emulated NPU, its bench on the stand-in for CUDA; with `--msprobe`
(an interpreter that has it and torch) also by msprobe on the CPU, in a probe copy of `transplt instrument` with its
default steps. What lies in DIR is not recorded again.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from tests.precision.causes import CAUSES, QUIET  # noqa: E402
from tests.precision.planting import compared, program, record  # noqa: E402
from tests.precision.trained import HARMLESS, TRAINED, Harmless, Trained, graded  # noqa: E402
from transplt.precision.dumps import open_dump  # noqa: E402
from transplt.precision.first_line import sentence  # noqa: E402
from transplt.precision.instrument.project import PROBES  # noqa: E402
from transplt.precision.instrument.script import Probing, instrument  # noqa: E402
from transplt.precision.rank_detail import Detail  # noqa: E402
from transplt.precision.watch.points import bounds, chosen  # noqa: E402
from transplt.precision.watch.watching import watch  # noqa: E402
from transplt.proof.launch.warm import Warm  # noqa: E402

#: Programs of two ranks.
_RANKS = ("shares", "halves")


def slug(text: str) -> str:
    return re.sub(r"\W+", "_", text)


class Runs:
    """Where the runs of one recorder lie, and what is still to be recorded."""

    def __init__(self, folder: Path, warm: Warm | None) -> None:
        self.folder, self.warm = folder, warm
        self.jobs: list[dict[str, Any]] = []

    def run(self, kind: str, name: str, swaps: Any, side: str, threads: int = 1) -> Path:
        """The dump of a run."""
        place = self.folder / kind / f"{slug(name)}_{side}"
        if not place.exists():
            if self.warm is not None:
                nproc = 2 if kind in _RANKS else 0
                device = "npu" if side == "npu" else "cuda"
                record(place, f"trained/{kind}", device, self.warm, swaps, nproc=nproc, task="statistics",
                       threads=threads)  # fmt: skip
            else:
                self._probe(place, kind, swaps, threads)
        return place / "dump"

    def _probe(self, place: Path, kind: str, swaps: Any, threads: int) -> None:
        place.mkdir(parents=True)
        text = program(f"trained/{kind}", "cpu", swaps).encode()
        for name, data in instrument({f"{kind}.py": text}, f"{kind}.py", Probing()).files.items():
            (place / name).write_bytes(data)
        for probe in PROBES:
            shutil.copy(probe, place)
        self.jobs.append({"folder": str(place), "script": f"{kind}.py", "nproc": 2 if kind in _RANKS else 0,
                          "fault": None, "threads": threads})  # fmt: skip

    def record_with(self, python: str) -> None:
        """Let an interpreter with msprobe record what is left."""
        if self.jobs:
            path = self.folder / "jobs.json"
            path.write_text(json.dumps({"record": self.jobs, "compare": []}))
            script = str(Path(__file__).with_name("planted_msprobe.py"))
            quiet = subprocess.DEVNULL
            subprocess.run([python, script, str(path)], check=False, stdout=quiet, stderr=quiet)
            for line in Path(f"{path}.done").read_text().splitlines():
                done = json.loads(line)
                if any(done["codes"]):
                    print("failed:", done["folder"], done["codes"])


def measure(runs: Runs, faults: list[Trained], pairs: list[Harmless], python: str) -> Counter[str]:
    """Record all, and count what is said of them."""
    kinds = dict.fromkeys(each.kind for each in (*faults, *pairs))
    benches = {kind: runs.run(kind, "bench", (), "bench") for kind in kinds}
    of = {each.name + each.kind: runs.run(each.kind, each.name, each.swaps, "npu") for each in faults}
    equal = [
        (pair, runs.run(pair.kind, pair.name, pair.swaps, "npu", pair.threads),
         runs.run(pair.kind, pair.name, pair.bench, "bench") if pair.bench else benches[pair.kind])
        for pair in pairs
    ]  # fmt: skip
    if python:
        runs.record_with(python)
    counts: Counter[str] = Counter()
    for each in faults:
        said = graded(each, compared(of[each.name + each.kind], benches[each.kind]))
        counts[("behind " if each.behind else "before ") + said.partition(":")[0]] += 1
        print(f"{each.kind} | {each.name} | {said}", flush=True)
    for pair, npu, bench in equal:
        found = compared(npu, bench)
        quiet = found.same and found.first is None
        counts["harmless quiet" if quiet else "harmless alarm"] += 1
        rows = (line for at in found.compared if not at.noisy for line in Detail(found, at).lines)
        wrong = [line.npu_name for line in rows if line.reached == "No"] if quiet else []
        counts["quiet, and a row says No"] += bool(wrong)
        if wrong:
            print("  No:", wrong[:4])
        print(f"{pair.kind} | {pair.name} | {'quiet' if quiet else 'ALARM: ' + sentence(found)}", flush=True)
    for kind, bench in benches.items():
        watched = watch([open_dump(str(bench))], chosen("recommended"), bounds(()), (-65504.0, 65504.0))
        counts["watch hit" if watched.hits else "watch quiet"] += 1
        first = {point: (hits[0].row, hits[0].tensor, hits[0].why) for point, hits in watched.hits.items()}
        print(f"{kind} | watch | {first or 'quiet'}", flush=True)
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=["mended", "aside", "all", "causes"], default="all")
    parser.add_argument("--only", default="")
    parser.add_argument("--msprobe", default="", metavar="PYTHON")
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="trained-"))
    faults = [each for each in TRAINED if given.set == "all" or each.aside == (given.set == "aside")]
    faults, every = (CAUSES, QUIET) if given.set == "causes" else (faults, HARMLESS)
    faults = [each for each in faults if given.only in f"{each.kind} {each.name}"]
    pairs = [each for each in every if given.only in f"{each.kind} {each.name}"]
    with Warm() as warm:
        print(dict(measure(Runs(folder / "transplt", warm), faults, pairs, "")))
    if given.msprobe:
        print(dict(measure(Runs(folder / "probed", None), faults, pairs, given.msprobe)))


if __name__ == "__main__":
    main()
