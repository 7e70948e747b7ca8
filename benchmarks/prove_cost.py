"""What `transplt prove` costs a user in time, as a multiple of one plain run of the original.

usage: python benchmarks/prove_cost.py ORIGINAL MIGRATED [DIFFERENT] --main train.py [--rounds 3] [-- ARGS]

All run to their own end. A plain run is the original on the stand-in for CUDA, started as anybody starts a script, with
nothing watched. The proof is the command: with an empty cache, again with what it kept, and of DIFFERENT, a port with a
mistake in it. Of each the smallest of all rounds counts. Exit code 1 beyond three, two and five plain runs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from transplt.proof.launch import runner  # noqa: E402
from transplt.proof.launch.options import RunOptions  # noqa: E402
from transplt.proof.prove.projects import find_project  # noqa: E402

#: Plain runs that a proof may take: the first of an equal port, one with a known original, and of a different port.
LIMITS = {"equal, the first time": 3.0, "equal, the original known": 2.0, "different": 5.0}


def plain(original: Path, main: str, arguments: list[str]) -> float:
    """Seconds of one run that nobody watches."""
    project = find_project(original, main, ())
    with tempfile.TemporaryDirectory() as folder:
        root = project.copy_to(Path(folder))
        options = RunOptions(main, tuple(arguments), sys.executable, random="cpu", threads=1, folder=str(root))
        begun = time.perf_counter()
        done = runner.start(options, host="cuda", capture=True, echo=False)
        if done.code:
            raise SystemExit(f"{original}/{main} ends with {done.code}:\n{done.output[-500:]}")
        return time.perf_counter() - begun


def proof(original: Path, migrated: Path, main: str, arguments: list[str], cache: str, word: str) -> float:
    """Seconds of a proof that comes to this word."""
    command = [sys.executable, "-m", "transplt", "prove", str(original), str(migrated), "--main", main, "--steps", "0"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": cache}
    environment.pop("TRANSPLT_NO_CACHE", None)
    begun = time.perf_counter()
    done = subprocess.run([*command, "--", *arguments], env=environment, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - begun
    if not done.stdout.startswith(f"transplt prove: {word}"):
        raise SystemExit(f"not {word}: {done.stdout[:500]}{done.stderr[-500:]}")
    return seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("original", type=Path)
    parser.add_argument("migrated", type=Path)
    parser.add_argument("different", type=Path, nargs="?")
    parser.add_argument("--main", default="main.py")
    parser.add_argument("--rounds", type=int, default=3)
    own, _, rest = " ".join(["", *sys.argv[1:], ""]).partition(" -- ")
    given = parser.parse_args(own.split())
    arguments = rest.split()
    taken: dict[str, list[float]] = {"a plain run": [], **{name: [] for name in LIMITS}}
    for _ in range(given.rounds):
        with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as other:
            taken["a plain run"].append(plain(given.original, given.main, arguments))
            for name in [*LIMITS][:2]:
                taken[name].append(proof(given.original, given.migrated, given.main, arguments, cache, "equal"))
            if given.different is not None:
                one = proof(given.original, given.different, given.main, arguments, other, "differs")
                taken["different"].append(one)
    once = min(taken["a plain run"])
    over = False
    for name, seconds in taken.items():
        if seconds:
            times = min(seconds) / once
            over |= times > LIMITS.get(name, times)
            print(f"{name:28} {min(seconds):6.1f} s  {times:4.1f}")
    return int(over)


if __name__ == "__main__":
    sys.exit(main())
