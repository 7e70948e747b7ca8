"""PyTorch's operators on the card, as a table: runs of `op_database.py`, and the verdicts that were written down."""

from __future__ import annotations

import json
from pathlib import Path

from tests import forked

HERE = Path(__file__).parent
TABLE = HERE.parents[1] / "docs" / "reference" / "card.json"
#: Type and direction; the first is run by every CI.
RUNS = tuple(
    f"{dtype} {direction}"
    for direction in ("forward", "backward")
    for dtype in ("float32", "float16", "bfloat16", "int64", "bool")
    if direction == "forward" or dtype in ("float32", "float16", "bfloat16")
)
SLICES = 2


def verdicts(run: str, at: int, folder: Path) -> dict[str, list[str]]:
    """The verdict of each entry in slice `at` of a run, and why; what it needs is kept in `folder`."""
    dtype, direction = run.split()
    words = [dtype, "--slice", f"{at}/{SLICES}", *(["--backward"] if direction == "backward" else [])]
    done = forked.on_npus(HERE / "op_database.py", tuple(words), folder, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, list[str]] = json.loads(done.stdout[done.stdout.index("{") :])
    return found
