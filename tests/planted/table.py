"""What `transplt prove` says of each planted mistake and each right port, as a table, with both counts.

    python -m tests.planted.table [NAME ...]        # without names: all of them
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.planted.mistakes import MISTAKES
from tests.planted.planting import miss, plant, prove
from tests.planted.right import RIGHT, place


def mistakes(names: Sequence[str], folder: Path) -> Iterator[tuple[str, str, str, float]]:
    """Name, verdict, what was missed, seconds."""
    for mistake in MISTAKES:
        if names and mistake.name not in names:
            continue
        begun = time.monotonic()
        (folder / mistake.name).mkdir()
        planted = plant(mistake, folder / mistake.name)
        found = prove(planted.original, planted.migrated, folder / mistake.name, str(mistake.nproc))
        yield mistake.name, found.verdict, miss(mistake, planted, found), time.monotonic() - begun


def right_ports(names: Sequence[str], folder: Path) -> Iterator[tuple[str, str, str, float]]:
    """Name, verdict, the sentence where it is called wrong, seconds."""
    for right in RIGHT:
        if names and right.name not in names:
            continue
        begun = time.monotonic()
        (folder / right.name).mkdir()
        original, migrated, main = place(right, folder / right.name)
        found = prove(original, migrated, folder / right.name, right.nproc, "--", *right.arguments, main=main)
        wrong = "" if found.verdict in ("equal", "runs") else found.sentence
        yield right.name, found.verdict, wrong, time.monotonic() - begun


def main(names: Sequence[str]) -> None:
    """Print a row as soon as it is known, and the counts at the end."""
    with tempfile.TemporaryDirectory(prefix="transplt-planted-") as folder:
        for title, rows, good in (
            ("mistakes", mistakes(names, Path(folder)), "found"),
            ("right ports", right_ports(names, Path(folder)), "not called wrong"),
        ):
            count = fine = 0
            print(f"| {title} | verdict | {good} | s |\n|---|---|---|---:|")
            for name, verdict, fault, seconds in rows:
                count, fine = count + 1, fine + (not fault)
                print(f"| {name} | {verdict} | {f'no: {fault}' if fault else 'yes'} | {seconds:.0f} |", flush=True)
            print(f"\n{fine} of {count} {title} {good}\n", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
