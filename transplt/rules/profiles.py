"""What a profile shows and what helps: kinds of operators and findings, from rules/support/profiles.json."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache, partial

from transplt.rules.tables import read_table

_table = partial(read_table, "support/profiles.json")

#: Kinds that readers ask for by name; the second is what is no kind of the table.
COMMUNICATION, OTHER = "communication", "other"


@dataclass(frozen=True, slots=True)
class Remedy:
    """What a finding in a profile means and what to do.

    `of`: what its share is of (card, step, communication, host); `least`: percent from which it counts; `kind`: the
    kind of operators that it is about, empty for others; `aten`: PyTorch operators behind it, without their namespace;
    `codes`: findings of a migration that foretell it; `info`: worth knowing, and no fault.
    """

    name: str
    title: str
    means: str
    do: tuple[str, ...]
    codes: tuple[str, ...]
    source: str
    kind: str = ""
    of: str = ""
    least: float = 0.0
    aten: tuple[str, ...] = ()
    info: bool = False


@cache
def remedies() -> dict[str, Remedy]:
    """All of them by name: of profiles, and of operator information in logs."""
    table = _table()
    return {
        row["name"]: Remedy(
            row["name"], row["title"], row["means"], tuple(row["do"]), tuple(row["codes"]),
            table["sources"][row["source"]], row.get("kind", ""), row.get("of", ""), row.get("least", 0.0),
            tuple(row.get("aten", ())), row.get("info", False),
        )
        for row in (*table["findings"], *table["op_info"])
    }  # fmt: skip


@lru_cache(maxsize=10_000)
def kind_of(operator: str, core: str = "") -> str:
    """The kind of an operator by its type and the core that it ran on, `OTHER` for none.

    >>> kind_of("TransData", "AI_VECTOR_CORE"), kind_of("MatMulV2", "AI_CORE"), kind_of("Add")
    ('format conversion', 'matrix unit', 'other')
    """
    for name, cores, expression in _kinds():
        if core.upper() in cores or (expression is not None and expression.fullmatch(operator)):
            return name
    return OTHER


def kinds() -> tuple[str, ...]:
    """The names of all kinds, the one for the rest last."""
    return (*(name for name, _, _ in _kinds()), OTHER)


@lru_cache(maxsize=10_000)
def api_kind(api: str) -> str:
    """`compiles` or `waits` for a function of acl or the runtime that does so, else empty."""
    last = api.rpartition("@")[2]
    return next((kind for kind, expression in _apis() if expression.fullmatch(last)), "")


def slows(code: str) -> tuple[Remedy, ...]:
    """The findings in a profile that findings of a migration with a code (NPU712) foretell."""
    return tuple(each for each in remedies().values() if code in each.codes)


def slows_text(code: str, document: str = "") -> str:
    """What findings with a code foretell in a profile, as a section of its page; empty for none.

    With a `document`, the list of what profile-read finds, each is a link into it.
    """
    rows = [
        f"- {f'[{each.name}]({document}#{each.name})' if document else each.name}: {each.title}" for each in slows(code)
    ]
    if not rows:
        return ""
    head = "## In a profile\n\nWhat is left of it may cost time (`transplt profile-read DIR`):\n\n"
    return head + "\n".join(rows) + "\n"


@cache
def _kinds() -> tuple[tuple[str, frozenset[str], re.Pattern[str] | None], ...]:
    return tuple((row["name"], frozenset(row["cores"]), _any_of(row["types"])) for row in _table()["kinds"])


@cache
def _apis() -> tuple[tuple[str, re.Pattern[str]], ...]:
    found = []
    for name, patterns in _table()["apis"].items():
        expression = _any_of(patterns)
        if expression is not None:
            found.append((name, expression))
    return tuple(found)


def _any_of(patterns: list[str]) -> re.Pattern[str] | None:
    parts = [re.escape(each.removesuffix("*")) + (".*" if each.endswith("*") else "") for each in patterns]
    return re.compile("|".join(parts), re.IGNORECASE | re.DOTALL) if parts else None
