"""Ranks that wait for one another and will not meet: known long before gloo gives up, which takes it 30 minutes.

The processes of a traced run report when a collective begins and ends. If every process of a process group either
stands in one or has ended, nothing can come any more that would end it; only the collective itself may still be on its
way, and then some process computes, reports or ends. Ranks that have not come yet may only be slow to start.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: For how long nothing may have happened, in seconds.
PATIENCE = 6.0
#: The same while there are fewer processes than ranks.
_START = 30.0
#: The share of a processor that a process takes at most while it waits.
_IDLE = 0.05


@dataclass
class _Process:
    """What one process has reported. `open` maps the numbers of collectives to whether the process waits for them,
    `world` is how many ranks its largest group has, `grouped` whether it is one of them now."""

    pid: int
    read: int = 0
    world: int = 0
    grouped: bool = False
    open: dict[int, bool] = field(default_factory=dict)

    @property
    def waits(self) -> bool:
        return any(self.open.values())

    def take(self, event: dict[str, Any]) -> None:
        kind = event["e"]
        if kind == "coll":
            self.open[event["n"]] = not event["async"]
            self.grouped = True
            self.world = max(self.world, len(event["group"]))
        elif kind == "coll_wait":
            self.open[event["n"]] = True
        elif kind == "coll_end":
            self.open.pop(event["n"], None)
        elif kind == "group_end" and event["name"] == "default":
            self.grouped = False


class Watch:
    """Looks at the traces in a folder, again and again; `steps` are those of all optimizers and ranks so far."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._processes: dict[Path, _Process] = {}
        self.steps = 0
        self._since: float | None = None
        self._spent: dict[int, float] = {}

    def hung(self) -> bool:
        """Whether the ranks that are left have been waiting for one another for so long."""
        news = self._read()
        every = self._processes.values()
        # Without a rank that waits there is nothing to ask.
        spent = _processor_seconds([each.pid for each in every]) if any(each.waits for each in every) else {}
        ranks = {each.pid: each for each in every if each.grouped and each.pid in spent}
        now = time.monotonic()
        if news or not ranks or not all(each.waits for each in ranks.values()):
            self._since = None
            return False
        complete = sum(each.world > 0 for each in every) >= max(each.world for each in ranks.values())
        asked = [*(ranks if complete else spent)]
        passed = now - self._since if self._since is not None else 0.0
        busy = any(spent[pid] - self._spent.get(pid, 0.0) > _IDLE * max(passed, 1.0) for pid in asked)
        if self._since is None or busy or {*spent} != {*self._spent}:
            self._since, self._spent = now, spent
            return False
        return passed >= (PATIENCE if complete else _START)

    def _read(self) -> bool:
        """Take in what was written since the last time; True where that was anything."""
        news = False
        for path in self.folder.glob("*.trace"):
            process = self._processes.setdefault(path, _Process(int(path.stem)))
            with contextlib.suppress(OSError), path.open("rb") as file:
                file.seek(process.read)
                lines = file.read()
                whole = lines[: lines.rfind(b"\n") + 1]
                process.read += len(whole)
                news = news or bool(whole)
                self.steps += whole.count(b'{"e": "step"')
                for line in whole.splitlines():
                    if line.startswith((b'{"e": "coll', b'{"e": "group_end')):
                        process.take(json.loads(line))
        return news


def _processor_seconds(pids: list[int]) -> dict[int, float]:
    """How much processor time those of the processes have taken that are still running."""
    if not sys.platform.startswith("linux"):
        return _seconds_by_ps(pids)
    ticks = os.sysconf("SC_CLK_TCK")
    found: dict[int, float] = {}
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
            if fields[0] not in (b"Z", b"X"):
                found[pid] = (int(fields[11]) + int(fields[12])) / ticks
    return found


def _seconds_by_ps(pids: list[int]) -> dict[int, float]:
    if not pids:
        return {}
    command = ["ps", "-o", "pid=,stat=,time=", "-p", ",".join(map(str, pids))]
    with contextlib.suppress(OSError, ValueError, subprocess.SubprocessError):
        listing = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False).stdout
        rows = [line.split() for line in listing.splitlines()]
        return {int(pid): _seconds(spent) for pid, state, spent in rows if not state.startswith("Z")}
    return {}


def _seconds(text: str) -> float:
    """`1:02:03.45`, `2:03.45`, `1-02:03:04` in seconds."""
    days, _, rest = text.rpartition("-")
    total = 0.0
    for part in rest.split(":"):
        total = total * 60 + float(part)
    return total + 86400 * int(days or 0)
