"""What a survey of many repositories costs: by workers, killed and resumed, and on other executors; the same bytes.

    python -m benchmarks.survey FOLDER... [--workers 1 2 4] [--executors dask://local:2 ray://local:2] [--json FILE]

For each: wall clock, CPU (user + system) of the command and of the processes that it waited for, CPU of the analyses
alone, the most memory that one analysis had and that all processes of the survey had at one time (Linux, looked at each
half second, what they share counted once), and the load of the machine before. Then a survey is killed (SIGKILL) once
a third of its repositories is done, and resumed; and a second one is made of what has not changed. Exits 1 when
survey.json differs between any two.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def states(out: Path) -> list[Path]:
    return sorted((out / "repositories").glob("*.json"))


def command(folders: Sequence[str], out: Path, executor: str) -> list[str]:
    program = [sys.executable, "-m", "transplt", "survey", *folders, "-o", str(out), "--executor", executor]
    return [*program, "--exit-zero", "-q"]


def descendants(root: int) -> list[int]:
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    found = [root]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found


def memory_kb(root: int) -> int:
    """What the processes below `root` have in memory now, shared pages in parts."""
    total = 0
    for each in descendants(root):
        with contextlib.suppress(OSError, ValueError):
            text = Path(f"/proc/{each}/smaps_rollup").read_text()
            total += int(text.partition("\nPss:")[2].split()[0])
    return total


def ran(command: Sequence[str]) -> int:
    """Runs a command; returns the most memory in MB that it and what it started had at one time, 0 if not known."""
    process, most, done = subprocess.Popen(command), 0, threading.Event()

    def watch() -> None:
        nonlocal most
        while not done.wait(0.5):
            most = max(most, memory_kb(process.pid))

    watcher = threading.Thread(target=watch)
    if sys.platform == "linux":
        watcher.start()
    code = process.wait()
    done.set()
    if code:
        raise subprocess.CalledProcessError(code, command)
    return most // 1024


def measured(name: str, folders: Sequence[str], out: Path, executor: str) -> dict[str, Any]:
    load, before = os.getloadavg()[0], resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.monotonic()
    most = ran(command(folders, out, executor))
    wall, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    kept = [json.loads(path.read_bytes()) for path in states(out)]
    row = {
        "what": name,
        "wall": round(wall, 1),
        "cpu": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1),
        "analyses": round(sum(each["cpu"] for each in kept), 1),
        "peak_mb": max((each["peak_mb"] for each in kept), default=0),
        "all_mb": most,
        "load": round(load, 1),
        "sha256": hashlib.sha256((out / "survey.json").read_bytes()).hexdigest()[:16],
    }
    print("  ".join(f"{key} {value}" for key, value in row.items()), flush=True)
    return row


def killed(folders: Sequence[str], out: Path, executor: str) -> int:
    """Starts a survey and kills it when a third is done; returns how many were kept by then."""
    process = subprocess.Popen(command(folders, out, executor))
    while process.poll() is None and len(states(out)) < len(folders) // 3:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return len(states(out))


def main() -> int:
    """Prints a line for each survey."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--workers", nargs="*", type=int, default=[1, 2, 4])
    parser.add_argument("--executors", nargs="*", default=[], help="others than processes")
    parser.add_argument("--no-kill", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        rows = []
        for number in options.workers:
            where = f"processes:{number}"
            rows.append(measured(where, options.folders, scratch / f"w{number}", where))
        if options.workers:
            where = f"processes:{options.workers[-1]}"
            rows.append(measured("again", options.folders, scratch / f"w{options.workers[-1]}", where))
        if not options.no_kill:
            kept = killed(options.folders, scratch / "killed", "processes:2")
            print(f"killed when {kept} of {len(options.folders)} were kept", flush=True)
            rows.append(measured("resumed", options.folders, scratch / "killed", "processes:2"))
        for place, executor in enumerate(options.executors):
            rows.append(measured(executor, options.folders, scratch / f"e{place}", executor))
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="ascii")
    same = len({row["sha256"] for row in rows}) == 1
    print("the same bytes" if same else "survey.json DIFFERS")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
