"""What the work on one file may cost: CPU time and memory. Far more than any file takes that a person wrote."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PART = re.compile(r"(\d{1,6}) ?(s|MB|GB)")
FORM = 'a text such as "60s 4096MB": seconds of CPU time, memory in MB or GB, or one of both'


@dataclass(frozen=True, slots=True)
class Budget:
    """Seconds of CPU time, and MB of memory beyond what the process had before, for each pass over a file.

    The largest files of real projects take some two seconds and 300 MB: what a run writes does not depend on how fast
    the machine is.
    """

    seconds: int = 60
    megabytes: int = 4096

    def text(self) -> str:
        """As `parse_budget` reads it."""
        return f"{self.seconds}s {self.megabytes}MB"

    def with_at_most(self, other: Budget) -> Budget:
        """The smaller one of each."""
        return Budget(min(self.seconds, other.seconds), min(self.megabytes, other.megabytes))


def parse_budget(text: object, default: Budget) -> Budget:
    """The budget that a setting asks for; what it does not name is that of the default. ValueError for other texts."""
    parts = text.split(" ") if isinstance(text, str) else []
    found = dict[str, int]()
    for part in parts:
        match = _PART.fullmatch(part)
        name = "" if match is None else "seconds" if match[2] == "s" else "megabytes"
        if match is None or name in found or not int(match[1]):
            raise ValueError(FORM)
        found[name] = int(match[1]) * (1024 if match[2] == "GB" else 1)
    if not found:
        raise ValueError(FORM)
    return Budget(found.get("seconds", default.seconds), found.get("megabytes", default.megabytes))
