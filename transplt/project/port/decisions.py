"""The decisions of a port: which edits belong to one commit, and why they are made (rules/support/decisions.json)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from transplt.base.finding import Finding
from transplt.rules.tables import read_table

#: Decisions that may change what is computed: one that a proof speaks against is left out.
ON_REQUEST = frozenset({"adaptors", "many-cards", "mixed-precision", "tunings", "similar"})


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision: its name, the subject of its commit, and why."""

    name: str
    subject: str
    why: str


@cache
def decisions() -> tuple[Decision, ...]:
    """All decisions, in the order of their commits."""
    return tuple(Decision(row["name"], row["subject"], row["why"]) for row in read_table(_TABLE)["decisions"])


_TABLE = "support/decisions.json"


@cache
def _by_prefix() -> Mapping[str, Decision]:
    rows = zip(read_table(_TABLE)["decisions"], decisions(), strict=True)
    return {prefix: decision for row, decision in rows for prefix in row["codes"]}


def decision_of(code: str) -> Decision:
    """The decision that an edit with this code belongs to."""
    prefixes = _by_prefix()
    return next(prefixes[code[:length]] for length in range(len(code), -1, -1) if code[:length] in prefixes)


def by_decision(edits: Iterable[Finding]) -> dict[Decision, list[Finding]]:
    """The edits of each decision that has some, in the order of the commits."""
    found: dict[Decision, list[Finding]] = {each: [] for each in decisions()}
    for edit in edits:
        found[decision_of(edit.code)].append(edit)
    return {decision: its for decision, its in found.items() if its}
