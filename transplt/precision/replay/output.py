"""The files of a replay, in a folder that is complete or absent."""

from __future__ import annotations

import json
import os
from pathlib import Path

from transplt.base.disk.publish import publish, staging
from transplt.base.errors import CannotFinish, reason, shown
from transplt.precision.replay.outcome import Outcome
from transplt.precision.replay.outcome_text import replay_json
from transplt.precision.table import csv_text

#: What a folder may hold that is written anew.
OURS = ("replay.", ".transplt")


def write(out: Path, found: Outcome) -> None:
    """Writes replay.csv, a row for each tensor in the columns of a comparison, and replay.json."""
    target = Path(os.path.abspath(out))
    with staging(target) as stage:
        try:
            table = csv_text(found.lines, "auto", found.stacks)
            (stage.folder / "replay.csv").write_bytes(table.encode("utf-8", "backslashreplace"))
            (stage.folder / "replay.json").write_text(json.dumps(replay_json(found), indent=1) + "\n", "utf-8")
        except OSError as error:
            raise CannotFinish(f"cannot write {shown(target)}: {reason(error)}") from error
        publish(stage, replace=True)
