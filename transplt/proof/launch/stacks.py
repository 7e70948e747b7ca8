"""Where a process stood, from what npu_emulator.stacks let it write; and where that is in a project."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_FRAME = re.compile(r'^  File "(.*)", line (\d+) in (.*)$')
_ESCAPED = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8}))")


def below(path: str, root: Path) -> str:
    """A path relative to `root`, with forward slashes; as it is where it lies elsewhere."""
    try:
        return Path(os.path.realpath(path)).relative_to(root.resolve()).as_posix() if path else ""
    except ValueError:
        return path


def told_below(told: Iterable[dict[str, Any]], root: Path) -> list[dict[str, Any]]:
    """What was told of lines, with paths below `root`."""
    return [{**each, "path": below(each["path"], root)} for each in told]


def stood(text: str) -> dict[str, Any] | None:
    """The innermost frame of the user's own code: its path, line (from 1) and function; None where there is none.

    `text` is a line of JSON, the parts of a path that mark a library, then stacks as faulthandler writes them:
    thread by thread, the innermost frame first. The thread that was interrupted counts before the
    others, the main one before those that it started.
    """
    head, _, rest = text.partition("\n")
    if not rest.strip():
        return None
    libraries = [each for each in json.loads(head) if isinstance(each, str)]
    threads: list[list[dict[str, Any]]] = []
    current = None
    for line in rest.splitlines():
        frame = _FRAME.match(line)
        if frame is None:
            if line.startswith(("Current thread", "Thread ")):
                threads.append([])
                current = len(threads) - 1 if line.startswith("Current") else current
        elif threads:
            path = _ESCAPED.sub(lambda found: chr(int(next(filter(None, found.groups())), 16)), frame[1])
            threads[-1].append({"path": os.path.abspath(path), "line": int(frame[2]), "function": frame[3]})
    ordered = [*([threads[current]] if current is not None else []), *reversed(threads)]
    written = (frame for thread in ordered for frame in thread if not os.path.basename(frame["path"]).startswith("<"))
    return next((each for each in written if not any(map(os.path.realpath(each["path"]).count, libraries))), None)
