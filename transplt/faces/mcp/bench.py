"""What the tools work with: the folders, what starts a command, and texts as they stand in an answer."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transplt.base.errors import CannotFinish, UsageError
from transplt.base.text.regular_file import RECORDS, read_regular
from transplt.faces.mcp.answers import cut
from transplt.faces.mcp.child import Ended, Start, start
from transplt.faces.mcp.folders import Folders

Arguments = dict[str, Any]
Answer = dict[str, Any]

#: Seconds of a tool: a look, and what writes.
LOOK, WRITE = 600.0, 1800.0
#: Lines, and entries of a list, that an answer holds.
MOST_LINES = 20
MOST_ENTRIES = 10


@dataclass(frozen=True, slots=True)
class Bench:
    """What the tools work with: the folders, and what starts a command."""

    folders: Folders
    start: Start = start

    async def run(self, arguments: list[str], seconds: float = LOOK, late: str = "") -> Ended:
        """A command that ended with 0 or 1. UsageError and CannotFinish with the sentence that it printed otherwise.

        `late` is what to do when it takes too long.
        """
        ended = await self.start(arguments, self.folders.root, seconds)
        if ended.late:
            raise CannotFinish(f"transplt {arguments[0]} took longer than {seconds:g} seconds and was stopped{late}")
        if ended.code not in (0, 1):
            lines = [line.removeprefix("Error: ") for line in ended.stderr.splitlines() if line.startswith("Error: ")]
            kind = UsageError if ended.code == 2 else CannotFinish
            raise kind(cut(lines[-1]) if lines else f"transplt {arguments[0]} ended with {ended.code}")
        return ended

    async def check(self, path: Path, *options: str) -> dict[str, Any]:
        """The document of `transplt check --format json`."""
        ended = await self.run(["check", "--format", "json", "--quiet", *options, "--", str(path)])
        table: dict[str, Any] = json.loads(ended.out)
        return table


def first_lines(text: str) -> list[str]:
    """The first lines of what a command printed, as they stand in an answer."""
    return [cut(line.strip()) for line in text.splitlines() if line.strip()][:MOST_LINES]


def short(value: Any) -> Any:
    """The value with its texts cut."""
    if isinstance(value, str):
        return cut(value)
    if isinstance(value, list):
        return [short(each) for each in value[:MOST_ENTRIES]]
    return {name: short(each) for name, each in value.items()} if isinstance(value, dict) else value


def read_json(path: Path) -> dict[str, Any]:
    """A report that a command has written. CannotFinish when there is none."""
    try:
        table: dict[str, Any] = json.loads(read_regular(path, RECORDS))
    except (OSError, ValueError) as error:
        raise CannotFinish("the run ended without a report") from error
    return table
