"""How faults of precision are found, by subject and by the names that lead there: rules/support/fault_finding.json."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from transplt.rules.tables import read_table


@dataclass(frozen=True, slots=True)
class Guidance:
    """One thing to know when a fault is looked for, and who says it."""

    subject: str
    text: str
    source: str


@cache
def _by_name() -> dict[str, tuple[Guidance, ...]]:
    rows: list[dict[str, Any]] = read_table("support/fault_finding.json")["rows"]
    found: dict[str, tuple[Guidance, ...]] = {}
    for row in rows:
        for name in row["names"]:
            found[name] = (*found.get(name, ()), Guidance(row["subject"], row["text"], row["source"]))
    return found


def guidance_on(name: str) -> tuple[Guidance, ...]:
    """What is to be known of a name or subject when a fault is looked for; empty for others."""
    return _by_name().get(name, ())


def names_with_guidance() -> tuple[str, ...]:
    """Subjects and names, as the table spells them."""
    return tuple(_by_name())
