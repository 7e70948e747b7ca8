"""What a process has used of the budget of its file: read from outside, so that nothing in the file can get past it.

Linux tells it in /proc (proc_pid_stat(5), proc_pid_status(5)). Elsewhere nobody watches.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass

from transplt.base.budget import Budget

#: Seconds between looks.
LOOK = 0.25
_MEMORY = re.compile(rb"^(?:RssAnon|VmSwap):\s+(\d+) kB", re.M)


def can_watch() -> bool:
    """True where the system says what a process has used."""
    return sys.platform == "linux"


@dataclass(frozen=True, slots=True)
class Used:
    """CPU seconds of a process, and the MB of memory that are its own."""

    seconds: float
    megabytes: float


def used_by(pid: int) -> Used | None:
    """What a process has used up to now; None for one that is gone, or where the system does not say."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        with open(f"/proc/{pid}/status", "rb") as file:
            kilobytes = sum(map(int, _MEMORY.findall(file.read())))
        return Used((int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), kilobytes / 1024)
    except (OSError, ValueError, IndexError):
        return None


@dataclass(slots=True)
class Watched:
    """One process over its files: `since` is what it had used when it was first seen with the one that it has now."""

    pid: int
    since: Used | None = None

    def next_file(self) -> None:
        """It has another file from now on."""
        self.since = None

    def over(self, budget: Budget) -> str:
        """What it has used up with its file: `60 s of CPU time`; empty while it may go on."""
        now = used_by(self.pid)
        if now is None:
            return ""
        if self.since is None:
            self.since = now
        if now.seconds - self.since.seconds > budget.seconds:
            return f"{budget.seconds} s of CPU time"
        if now.megabytes - self.since.megabytes > budget.megabytes:
            return f"{budget.megabytes} MB of memory"
        return ""
