"""Which findings an adaptor may answer: rules/support/adaptors.json."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache

from transplt.rules.tables import read_table

_TABLE = "support/adaptors.json"


def adaptors_for(codes: Collection[str]) -> tuple[str, ...]:
    """The names of the adaptors that answer findings of some codes."""
    rows = read_table(_TABLE)["adaptors"]
    return tuple(row["name"] for row in rows if not frozenset(row["codes"]).isdisjoint(codes))


@cache
def packages() -> frozenset[str]:
    """The packages whose versions decide what an adaptor writes."""
    return frozenset(name for row in read_table(_TABLE)["adaptors"] for name in row.get("packages", ()))
