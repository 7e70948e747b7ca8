"""What a migration cannot share among processes, in per cent, and how much faster two and eight jobs are by that.

    python -m benchmarks.cores FOLDER... [--repeat 3]

CPU seconds, so that a machine with other work on it gives the same figures. One process migrates each folder and keeps
what each file costs in both passes; what is left of its time is serial: start, imports, the sum of all facts, the
reports. N jobs take the serial part and the dearest of N shares, as `share_out` makes them. Beside it two jobs as they
are: the first process and half of what its children take, with what it costs to start them and to send facts.
"""

from __future__ import annotations

import argparse
import os
import pickle
import resource
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

#: Seconds of the first process, of its children, and of the dearest share of the passes, by number of jobs.
Figures = tuple[float, float, dict[int, float]]
JOBS = (2, 8)


def migrated(folder: str, out: str, jobs: int) -> Figures:
    """What a migration takes in this process, which has done nothing else."""
    from transplt.faces.cli.main import entry_point
    from transplt.project import file_passes
    from transplt.project.pool import share_out
    from transplt.project.worker import FileWorker

    took: dict[str, float] = defaultdict(float)
    shares: dict[int, Sequence[Sequence[Any]]] = {}

    def timed(step: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        def look(worker: Any, entry: Any) -> Any:
            begin = time.process_time()
            found = step(worker, entry)
            took[entry.path] += time.process_time() - begin
            return found

        return look

    def shared(entries: Sequence[Any], number: int) -> Sequence[Sequence[Any]]:
        shares.update((each, share_out(entries, each)) for each in JOBS)
        return share_out(entries, number)

    worker: Any = FileWorker
    worker.index, worker.finish = timed(worker.index), timed(worker.finish)
    passes: Any = file_passes
    passes.share_out = shared
    sys.argv = ["transplt", "-q", "-i", folder, "-o", out, "--jobs", str(jobs)]
    entry_point()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    dearest = {
        each: max((sum(took[entry.path] for entry in share) for share in found), default=0.0)
        for each, found in shares.items()
    }
    dearest[1] = sum(took.values())
    return time.process_time(), children.ru_utime + children.ru_stime, dearest


def apart(folder: Path, jobs: int) -> Figures:
    """`migrated` in a process of its own."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as scratch:
        said = Path(scratch) / "said"
        if os.fork() == 0:
            said.write_bytes(pickle.dumps(migrated(str(folder), f"{scratch}/out", jobs)))
            os._exit(0)
        os.wait()
        figures: Figures = pickle.loads(said.read_bytes())
        return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    print("| tree | serial, % | two jobs by shares | two jobs as they are | eight jobs by shares |")
    print("|---|---:|---:|---:|---:|")
    for folder in args.folders:
        rows = []
        for _ in range(args.repeat):
            alone, _, share = apart(folder.resolve(), 0)
            own, children, _ = apart(folder.resolve(), 2)
            serial = alone - share[1]
            rows.append((
                100 * serial / alone, alone / (serial + share[2]), alone / (own + children / 2),
                alone / (serial + share[8]),
            ))  # fmt: skip
        serial, two, measured, eight = (statistics.median(row[at] for row in rows) for at in range(4))
        print(f"| {folder.name} | {serial:.0f} | {two:.2f} | {measured:.2f} | {eight:.1f} |", flush=True)


if __name__ == "__main__":
    main()
