"""What frameworks take over from a training script: rules/support/frameworks.json."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache

from transplt.rules.tables import read_table

#: What a framework may take over: setting up several processes, mixed precision, how the optimizer steps.
PROCESSES, PRECISION, OPTIMIZER = "processes", "precision", "optimizer"


@dataclass(frozen=True, slots=True)
class Framework:
    """What it is called, what sets its precision (empty: code), and whether it starts processes itself."""

    called: str
    precision_set_by: str
    spawns: bool


@lru_cache(maxsize=4096)
def taken_over(part: str, full: str) -> Framework | None:
    """The framework that takes over a part of the training where a full name is called, derived from or imported."""
    return next((framework for form, framework in _forms(part) if form.fullmatch(full)), None)


@cache
def _forms(part: str) -> tuple[tuple[re.Pattern[str], Framework], ...]:
    found = []
    for row in read_table("support/frameworks.json")["frameworks"]:
        framework = Framework(row["called"], row.get("precision_set_by", ""), row.get("spawns", False))
        for name in row.get(part, ()):
            text = re.escape(name).replace(r"\*\*", r"(?:.*\.)?\w*").replace(r"\*", r"(?:.*\.)?")
            if name.endswith(".*"):
                text = rf"{re.escape(name[:-2])}(?:\..*)?"
            found.append((re.compile(text), framework))
    return tuple(found)
