"""How much CPU a second `transplt check` of the same files costs, against the first and against one without the cache.

    python -m benchmarks.cache FOLDER... [--repeat 3] [--check]

CPU seconds (user + system, children included, the smallest of the repeats) less those of the same command on a one-line
project, for each folder: without the cache, with an empty one, and with what that wrote. Then a line is added to the
largest Python file, in a copy of the folder: a comment, so that it tells its project the same.

--check exits 1 when the second costs more than a tenth of the first.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.speed import child_seconds

MOST_SHARE = 0.1


def looks(folder: Path, scratch: Path, repeat: int) -> list[float]:
    """CPU seconds of a check without the cache, a first one, a second one, and one after an edit."""
    command = [sys.executable, "-m", "transplt", "check", "-q", "--output-file", str(scratch / "out.txt"), str(folder)]
    python = sorted(folder.rglob("*.py"), key=lambda path: path.stat().st_size)
    largest = python[-1]
    before = largest.read_bytes()
    times = []
    for _ in range(repeat):
        shutil.rmtree(scratch / "transplt", ignore_errors=True)
        row = [child_seconds([*command, "--no-cache"], scratch)]
        row += [child_seconds(command, scratch), child_seconds(command, scratch)]
        largest.write_bytes(before + b"\n# a line\n")
        row.append(child_seconds(command, scratch))
        largest.write_bytes(before)
        times.append(row)
    return [min(column) for column in zip(*times, strict=True)]


def main() -> int:
    """Prints a line for each folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--check", action="store_true", help="exit 1 when a limit is not met")
    options = parser.parse_args()
    os.environ.pop("TRANSPLT_NO_CACHE", None)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # byte code is compiled once, as an installation has it
    slow = []
    print(f"{'project':24}{'no cache':>10}{'first':>10}{'second':>10}{'one edited':>12}{'second/first':>14}")
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        os.environ["XDG_CACHE_HOME"], os.environ["PYTHONPYCACHEPREFIX"] = str(scratch), str(scratch / "python")
        (scratch / "tiny").mkdir()
        (scratch / "tiny/one.py").write_text("x = 1\n", encoding="ascii")
        nothing = looks(scratch / "tiny", scratch, options.repeat)
        print(f"{'start-up':24}{nothing[0]:10.2f}{nothing[1]:10.2f}{nothing[2]:10.2f}{nothing[3]:12.2f}")
        for folder in options.folders:
            copy = scratch / "copies" / folder.resolve().name
            shutil.copytree(folder, copy, symlinks=True)
            spent = looks(copy, scratch, options.repeat)
            net = [max(whole - less, 0.0) for whole, less in zip(spent, nothing, strict=True)]
            print(f"{copy.name:24}{net[0]:10.2f}{net[1]:10.2f}{net[2]:10.2f}{net[3]:12.2f}{net[2] / net[1]:14.3f}")
            if net[2] > MOST_SHARE * net[1]:
                slow.append(copy.name)
            shutil.rmtree(copy)
    return int(options.check and bool(slow))


if __name__ == "__main__":
    sys.exit(main())
