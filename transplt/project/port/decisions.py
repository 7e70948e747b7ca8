"""The decisions of a port: which edits belong to one commit, and why they are made (rules/support/decisions.json)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from transplt.base.finding import Finding
from transplt.rules.tables import read_table

#: Decisions that may change what is computed: one that a proof speaks against is left out.
ON_REQUEST = frozenset({"adaptors", "many-cards", "mixed-precision", "tunings", "similar"})


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision: its name, the subject of its commit, and why; the codes of its edits (prefixes), of what they
    have to be where that matters, and by code what its commit says if it has such an edit.
    """

    name: str
    subject: str
    why: str
    codes: tuple[str, ...] = ()
    apis: str = ""
    did: tuple[tuple[str, str], ...] = ()

    def fit(self, code: str, api: str) -> tuple[bool, int]:
        """How well an edit fits: better where it is asked for what it is of, and by the longest prefix; else 0."""
        length = max((len(each) + 1 for each in self.codes if code.startswith(each)), default=0)
        of_it = bool(self.apis) and re.match(self.apis, api) is not None
        return (of_it and length > 0, length) if of_it or not self.apis else (False, 0)


@cache
def decisions(style: str = "npu") -> tuple[Decision, ...]:
    """All decisions of a style, in the order of their commits."""
    table = read_table("support/decisions.json")
    rows = {row["name"]: row for row in table["decisions"]}
    if style == "portable":
        rows = {row["name"]: {**rows.get(row["name"], {}), **row} for row in table["portable"]}
    return tuple(
        Decision(
            name, row["subject"], row["why"], (*row["codes"],), row.get("apis", ""), tuple(row.get("did", {}).items())
        )
        for name, row in rows.items()
    )  # fmt: skip


@cache
def decision_of(code: str, api: str = "", style: str = "npu") -> Decision:
    """The decision that an edit with this code belongs to, of this API."""
    return max(decisions(style), key=lambda each: each.fit(code, api))


def by_decision(edits: Iterable[tuple[Finding, str]], style: str = "npu") -> dict[Decision, list[Finding]]:
    """The edits of each decision that has some, in the order of the commits; each is given with what it is of."""
    found: dict[Decision, list[Finding]] = {each: [] for each in decisions(style)}
    for edit, api in edits:
        found[decision_of(edit.code, api, style)].append(edit)
    return {decision: its for decision, its in found.items() if its}
