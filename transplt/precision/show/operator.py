"""The operator that a name means, in one step and rank of a dump."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from transplt.base.errors import UsageError, shown
from transplt.precision.record import Dump, Part, Record, Row, called, named

#: So many rows that a name may mean are shown.
MOST_ROWS = 20


@dataclass(frozen=True, slots=True)
class Found:
    """The rows of one step and rank that a name means; `more` rows are left out."""

    dump: Dump
    step: int
    rank: int
    record: Record
    rows: tuple[Row, ...]
    stacks: Mapping[str, tuple[str, ...]]
    more: int = 0


def parts_at(dump: Dump, step: int | None, rank: int | None) -> dict[tuple[int, int], Part]:
    """The parts of a step, of a rank, or of both, in order. UsageError where there is none."""
    parts = {key: part for key, part in sorted(dump.parts.items()) if step in (None, key[0]) and rank in (None, key[1])}
    if not parts:
        steps, ranks = ", ".join(map(str, dump.steps)), ", ".join(map(str, dump.ranks))
        raise UsageError(f"{shown(dump.path)} has no such step and rank: its steps are {steps}, its ranks {ranks}")
    return parts


def find(dump: Dump, name: str, step: int | None, rank: int | None) -> Found:
    """The rows of the first step and rank (or those given) that have the operator. UsageError where none has."""
    names: list[str] = []
    for (at, who), part in parts_at(dump, step, rank).items():
        record = part.read()
        rows = tuple(named(record.rows, name))
        if rows:
            return Found(dump, at, who, record, rows[:MOST_ROWS], part.stacks(), max(0, len(rows) - MOST_ROWS))
        names = names or [row.name for row in record.rows]
    near = _near(name, names)
    meant = f"; did you mean {', '.join(map(shown, near))}?" if near else f"; it has {', '.join(map(shown, names[:3]))}"
    meant += " ..." if names[3:] and not near else ""
    raise UsageError(f"{shown(dump.path)} has no operator {shown(name)}{meant}")


def _near(name: str, names: list[str]) -> list[str]:
    """The operators that a name may stand for: those it is a part of, else those that are written like it."""
    wanted = name.lower()
    holding = [each for each in names if wanted in each.lower()]
    # `gelu` is nearer to gelu than to GELUActivation, or a kernel whose name holds it.
    holding.sort(key=lambda each: wanted not in re.split(r"[._]", each.lower()))
    if near := holding[:3] or get_close_matches(name, names, 3, 0.4):
        return near
    # By the function alone: `gleu` for Functional.gelu.0.forward.
    functions = {called(each).api.rpartition(".")[2].lower(): each for each in reversed(names)}
    return [functions[each] for each in get_close_matches(wanted, list(functions), 3, 0.6)]
