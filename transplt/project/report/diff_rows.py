"""A unified diff as rows of two columns, and what the page of one file shows beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@dataclass(frozen=True, slots=True)
class DiffRow:
    """One line of the input beside one of the output; numbers count from 1, None and "" where a side has no line."""

    old: int | None
    old_text: str
    new: int | None
    new_text: str
    same: bool = False


def diff_rows(patch: str, quoted: Sequence[tuple[int, str]] = ()) -> list[DiffRow]:
    """The rows of a patch, in order; `quoted` are lines of the input, (number, text), which it may lack."""
    rows = list(_of_patch(patch))
    there = {row.old for row in rows}
    waiting = [(number, text) for number, text in quoted if number not in there]
    made: list[DiffRow] = []
    shift = at = 0
    for row in rows:
        while at < len(waiting) and row.old is not None and waiting[at][0] < row.old:
            made.append(_quoted(*waiting[at], shift))
            at += 1
        if row.old is not None and row.new is not None:
            shift = row.new - row.old
        else:
            shift += 1 if row.old is None else -1
        made.append(row)
    return [*made, *(_quoted(number, text, shift) for number, text in waiting[at:])]


def _quoted(number: int, text: str, shift: int) -> DiffRow:
    return DiffRow(number, text, number + shift, text, same=True)


def _of_patch(patch: str) -> Iterator[DiffRow]:
    old = new = 0
    removed: list[tuple[int, str]] = []
    added: list[tuple[int, str]] = []
    for line in [*patch.split("\n"), "@"]:
        start, body = line[:1], line[1:].removesuffix("\r")
        if start == "-":
            if added:
                yield from _beside(removed, added)
            removed.append((old, body))
            old += 1
        elif start == "+":
            added.append((new, body))
            new += 1
        elif start in (" ", "@"):
            yield from _beside(removed, added)
            if found := _HUNK.match(line):
                old = int(found[1]) + (found[2] == "0")
                new = int(found[3]) + (found[4] == "0")
            elif start == " ":
                yield DiffRow(old, body, new, body, same=True)
                old, new = old + 1, new + 1


def _beside(removed: list[tuple[int, str]], added: list[tuple[int, str]]) -> Iterator[DiffRow]:
    """What went out beside what came in; both lists are empty afterwards."""
    for at in range(max(len(removed), len(added))):
        old, old_text = removed[at] if at < len(removed) else (None, "")
        new, new_text = added[at] if at < len(added) else (None, "")
        yield DiffRow(old, old_text, new, new_text)
    removed.clear()
    added.clear()
