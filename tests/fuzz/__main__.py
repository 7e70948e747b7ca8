"""Fuzzing from the command line.

    python -m tests.fuzz list                            the targets
    python -m tests.fuzz run [TARGET...] [--minutes N]   look for failures, and store what is found in the corpus
    python -m tests.fuzz try TARGET FILE                 one input (`-`: standard input)
    python -m tests.fuzz store TARGET FILE [--name X]    keep an input (`-`: standard input)

The minutes (FUZZ_MINUTES, else 20) are for all targets together. Exit code 1 when something fails.
"""

from __future__ import annotations

import argparse
import base64
import faulthandler
import os
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.fuzz.corpora import MAX_BYTES, store
from tests.fuzz.search import attempt, search
from tests.fuzz.targets import TARGETS

#: Above this a process has run wild: the program has less to do than any example may cost.
_ADDRESS_SPACE = 6 * 2**30


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list")
    run = commands.add_parser("run")
    run.add_argument("targets", nargs="*", metavar="TARGET")
    run.add_argument("--minutes", type=float, default=float(os.environ.get("FUZZ_MINUTES") or 20))
    run.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1))
    run.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**31))
    for name in ("try", "store"):
        command = commands.add_parser(name)
        command.add_argument("target", choices=TARGETS)
        command.add_argument("file")
    command.add_argument("--name", default="")
    one = commands.add_parser("one", description="what `run` starts for each target")
    one.add_argument("target", choices=TARGETS)
    one.add_argument("seconds", type=float)
    one.add_argument("seed", type=int)
    one.add_argument("scratch", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "list":
        print("\n".join(TARGETS))
    elif arguments.command == "run":
        if unknown := set(arguments.targets) - set(TARGETS):
            parser.error(f"no target {', '.join(sorted(unknown))}; there are {', '.join(TARGETS)}")
        return _run(arguments.targets or list(TARGETS), arguments.minutes, arguments.jobs, arguments.seed)
    elif arguments.command == "one":
        return _one(arguments.target, arguments.seconds, arguments.seed, arguments.scratch)
    else:
        data = sys.stdin.buffer.read() if arguments.file == "-" else Path(arguments.file).read_bytes()
        if arguments.command == "try":
            attempt(TARGETS[arguments.target], data)
        else:
            try:
                print(store(arguments.target, data, arguments.name))
            except ValueError as error:
                parser.error(str(error))
    return 0


def _run(names: list[str], minutes: float, jobs: int, seed: int) -> int:
    """Every target in a process of its own, `jobs` at a time, so that one that dies is a failure like any other."""
    jobs = min(jobs, len(names))
    seconds = minutes * 60 * jobs / len(names)
    print(f"{len(names)} targets, {seconds:.0f} s each, seed {seed}", flush=True)

    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder, ThreadPoolExecutor(jobs) as pool:

        def start(name: str) -> bool:
            scratch = Path(folder) / name
            command = [sys.executable, "-m", "tests.fuzz", "one", name, str(seconds), str(seed), str(scratch)]
            code = subprocess.run(command, check=False).returncode
            if code not in (0, 1):
                _found(name, scratch.read_bytes() if scratch.exists() else b"", f"the process ended with {code}")
            return code == 0

        return 0 if all(list(pool.map(start, names))) else 1


def _one(name: str, seconds: float, seed: int, scratch: Path) -> int:
    faulthandler.enable()
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    except (ImportError, ValueError, OSError):
        print("no limit of memory on this system", file=sys.stderr)
    found = search(TARGETS[name], seconds, seed, scratch)
    if found is not None:
        _found(name, *found)
    return int(found is not None)


def _found(name: str, data: bytes, why: str) -> None:
    lines = [f"--- {name} fails:", why.rstrip(), repr(data[:400])]
    if len(data) <= MAX_BYTES:
        lines.append(f"stored: {store(name, data)}")
        text = base64.b64encode(data).decode()
        if len(text) <= 8000:
            lines.append(f"elsewhere: echo {text} | base64 -d | python -m tests.fuzz store {name} -")
    print("\n".join(lines), flush=True)


if __name__ == "__main__":
    sys.exit(main())
