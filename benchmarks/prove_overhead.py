"""What `transplt prove` costs over the two runs that it makes: CPU seconds with what it watches, and without.

usage: python benchmarks/prove_overhead.py ORIGINAL MIGRATED --main train.py [--rounds 3] [-- ARGS]

Both sides are run to their end, in turn; the smallest of each is taken. Exit code 1 from 30 % on.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from transplt.emulator import runner
from transplt.emulator.options import RunOptions, Trace
from transplt.prove.projects import Project, find_project
from transplt.prove.proof import between

LIMIT = 0.3


def children() -> float:
    times = os.times()
    return times.children_user + times.children_system


def bare(project: Project, options: RunOptions, host: str) -> float:
    """CPU seconds of one run that nobody watches."""
    with tempfile.TemporaryDirectory() as folder:
        root = project.copy_to(Path(folder))
        begun = children()
        done = runner.start(
            replace(options, script=project.main, folder=str(root), trace=None), host=host, capture=True, echo=False
        )
        if done.code:
            raise SystemExit(f"{project.root}/{project.main} ends with {done.code}:\n{done.output[-500:]}")
        return children() - begun


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("original", type=Path)
    parser.add_argument("migrated", type=Path)
    parser.add_argument("--main", default="main.py")
    parser.add_argument("--rounds", type=int, default=3)
    own, _, rest = " ".join(["", *sys.argv[1:], ""]).partition(" -- ")
    given = parser.parse_args(own.split())
    options = RunOptions(given.main, tuple(rest.split()), sys.executable, random="cpu", trace=Trace(steps=0), threads=1)
    before, after = (find_project(path, given.main, ()) for path in (given.original, given.migrated))
    plain, watched = [], []
    for _ in range(given.rounds):
        plain.append(bare(before, options, "cuda") + bare(after, options, "npu"))
        begun = children()
        proof = between(before, after, options, lambda text: None).prove((1,))
        watched.append(children() - begun)
        print(f"{plain[-1]:.1f} s of CPU without, {watched[-1]:.1f} s with: {proof.verdict}", flush=True)
    over = min(watched) / min(plain) - 1
    print(f"over the two runs: {over:.0%}")
    return int(over >= LIMIT)


if __name__ == "__main__":
    sys.exit(main())
