"""What five small trainings cost on the emulated card beside plain torch: ratios of CPU time, each pair run in turn.

    python -m benchmarks.card_speed [--repeat 3] [--check]

A row is a program of `card_programs.py`: CPU seconds of 200 steps on the CPU, then the ratio to it on the vendor's
torch_npu over our card, the smallest of the repeats each. Below, microseconds of CPU of single calls on 4x4 tensors.
--check exits 1 when a program costs more than twice plain torch.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests import forked

PROGRAMS = Path(__file__).parent / "card_programs.py"
NAMES = ("cnn", "mlp", "transformer", "lstm", "gan")
CALLS = "add 4x4|mul 4x4|relu 4x4|mm 4x4|empty|item"
MOST = 2.0


def seconds(host: str, words: tuple[str, ...], folder: Path) -> list[float]:
    """The numbers that a run prints: `host` is cpu or npu."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if host == "cpu":
        done = subprocess.run(
            [sys.executable, str(PROGRAMS), "cpu", *words], env=environment, capture_output=True, text=True, check=True
        )
    else:
        done = forked.on_npus(PROGRAMS, ("npu", *words), folder)
        done.check_returncode()
    return [float(word) for word in done.stdout.split()]


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    os.environ["TRANSPLT_TESTS_COLD"] = "1"
    hosts, over = ("cpu", "npu"), []
    with tempfile.TemporaryDirectory() as scratch:
        print(f"{'':12} {'cpu, s':>8} {'npu':>8}")
        for name in NAMES:
            runs = [[seconds(host, (name,), Path(scratch))[0] for host in hosts] for _ in range(options.repeat)]
            plain, card = map(min, zip(*runs, strict=True))
            print(f"{name:12} {plain:8.2f} {card / plain:8.1f}")
            over += [name] if card > MOST * plain else []
        rows = [seconds(host, ("calls",), Path(scratch)) for host in hosts]
        for name, *figures in zip(CALLS.split("|"), *rows, strict=True):
            print(f"{name:12}" + "".join(f"{figure:9.1f}" for figure in figures) + " us")
    if over and options.check:
        print(f"more than {MOST} times plain torch: {', '.join(over)}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
