"""Lists pairs of Triton kernels that people wrote for GPUs and for NPUs, half of them set aside by a seed.

    python scripts/triton_pairs.py CLONES           the half that findings, edits and the judge are made with
    python scripts/triton_pairs.py CLONES --aside   the half that is looked at once, when they are done

CLONES holds clones of Liger-Kernel and flash-linear-attention, each in `owner+name` or `owner+name/repo`. A line is the
clone, the file for GPUs and the file for NPUs. Nothing of them is in this repository.
"""

from __future__ import annotations

import argparse
import random
import subprocess
from pathlib import Path

SEED = 39
LIGER, FLA = "linkedin+Liger-Kernel", "fla-org+flash-linear-attention"
#: The part of a path that marks the file for NPUs; without it, it is the path of the one for GPUs.
_MARKS = {LIGER: "backends/_ascend/ops/", FLA: "backends/triton_ascend/"}


def pairs(clones: Path, name: str) -> list[tuple[str, str]]:
    """(file for GPUs, file for NPUs) of a clone, by the order of their paths."""
    listed = subprocess.run(
        ["git", "-C", str(clone(clones, name)), "ls-tree", "-r", "--name-only", "HEAD"],
        check=True, capture_output=True, text=True,
    ).stdout.split("\n")  # fmt: skip
    known = set(listed)
    mark = _MARKS[name]
    both = ((path.replace(mark, ""), path) for path in sorted(listed) if mark in path)
    return [(gpu, npu) for gpu, npu in both if gpu in known and not npu.endswith("__init__.py")]


def clone(clones: Path, name: str) -> Path:
    """Where a clone lies."""
    inner = clones / name / "repo"
    return inner if inner.is_dir() else clones / name


def halves(clones: Path, name: str) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The pairs to work with, and those set aside."""
    every = pairs(clones, name)
    aside = set(random.Random(f"{SEED} {name}").sample(range(len(every)), len(every) // 2))
    return [each for at, each in enumerate(every) if at not in aside], [every[at] for at in sorted(aside)]


def main() -> None:
    """Print one half."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clones", type=Path)
    parser.add_argument("--aside", action="store_true")
    given = parser.parse_args()
    for name in (LIGER, FLA):
        for gpu, npu in halves(given.clones, name)[given.aside]:
            print(name, gpu, npu)


if __name__ == "__main__":
    main()
