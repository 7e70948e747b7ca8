"""What `transplt prove` costs over the two runs that it makes: CPU seconds with what it watches, and without.

usage: python benchmarks/prove_overhead.py ORIGINAL MIGRATED --main train.py [--rounds 3] [-- ARGS]

Both sides are run to their end, in turn; the smallest of each is taken. Two runs are two processes that import torch,
as somebody would start them; the proof is made as the command makes it. `--apart` leaves the import out of both, whose
processes are forked then: what is left is what watching costs. Exit code 1 from 30 % on.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from transplt.proof.launch import runner
from transplt.proof.launch.options import RunOptions, Trace
from transplt.proof.launch.warm import Warm
from transplt.proof.prove.projects import Project, find_project
from transplt.proof.prove.proof import between

LIMIT = 0.3


def children(warm: Warm | None) -> float:
    """CPU seconds of the processes that have ended: ours, or those that the waiting ones forked and waited for."""
    if warm is None:
        times = os.times()
        return times.children_user + times.children_system
    time.sleep(1.5)  # until they have been waited for
    ticks = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15] for pid in warm.pids]
    return sum(int(each) for one in ticks for each in one) / os.sysconf("SC_CLK_TCK")


def bare(project: Project, options: RunOptions, host: str, warm: Warm | None) -> float:
    """CPU seconds of one run that nobody watches."""
    with tempfile.TemporaryDirectory() as folder:
        root = project.copy_to(Path(folder))
        begun = children(warm)
        plain = replace(options, script=project.main, folder=str(root), trace=None)
        done = runner.start(plain, host=host, capture=True, echo=False, warm=warm)
        if done.code:
            raise SystemExit(f"{project.root}/{project.main} ends with {done.code}:\n{done.output[-500:]}")
        return children(warm) - begun


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("original", type=Path)
    parser.add_argument("migrated", type=Path)
    parser.add_argument("--main", default="main.py")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--apart", action="store_true")
    own, _, rest = " ".join(["", *sys.argv[1:], ""]).partition(" -- ")
    given = parser.parse_args(own.split())
    options = RunOptions(given.main, tuple(rest.split()), sys.executable, random="cpu", trace=Trace(steps=0), threads=1)
    before, after = (find_project(path, given.main, ()) for path in (given.original, given.migrated))
    plain, watched = [], []
    with Warm() as processes:
        apart = processes if given.apart else None
        for number in range(given.rounds + given.apart):
            cost = bare(before, options, "cuda", apart) + bare(after, options, "npu", apart)
            begun = children(apart)
            with Warm() as warm:
                proof = between(before, after, options, lambda text: None, apart or warm).prove((1,))
                time.sleep(1.5)  # until the runs have been waited for
            if given.apart and not number:  # in which the waiting processes began
                continue
            plain.append(cost)
            watched.append(children(apart) - begun)
            print(f"{plain[-1]:.2f} s of CPU without, {watched[-1]:.2f} s with: {proof.verdict}", flush=True)
    over = min(watched) / min(plain) - 1
    print(f"over the two runs: {over:.0%}")
    return int(over >= LIMIT)


if __name__ == "__main__":
    sys.exit(main())
