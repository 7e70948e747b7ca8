"""Actions as a person reads them: lines for a terminal, rows for a sheet, objects for JSON."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from transplt.base.errors import shown
from transplt.base.finding import Effort
from transplt.engine.actions.action import BLOCKS_TEXT, Action, Place
from transplt.engine.actions.actions import total_hours
from transplt.render.cell import many, visible

#: So many actions are shown on a terminal.
MOST_LINES = 10
_MOST_NUMBERS = 20
EFFORT_TEXT = {Effort.LOW: "minutes", Effort.MEDIUM: "hours", Effort.HIGH: "a day or more"}


def action_lines(actions: Sequence[Action], where: str = "", width: int = 0) -> Iterator[str]:
    """The ten actions that block first, under what they block, and how many more there are, in `where`.

    `width` is that of the terminal in columns; 0 for lines of any length.
    """
    if not actions:
        return
    head = f"  to do: {many(len(actions), 'action')}, {about(total_hours(actions))}; what blocks first:"
    yield from _wrapped(head, width)
    blocks = ""
    for number, action in enumerate(actions[:MOST_LINES], 1):
        if action.blocks != blocks:
            blocks = action.blocks
            yield f"    {BLOCKS_TEXT[blocks]}"
        line = (
            f"    {number:3}. {visible(action.title)} ({EFFORT_TEXT[action.effort]}, {how_many(action)}, "
            f"{shown(action.first)})"
        )
        yield from _wrapped(line, width)
    if rest := actions[MOST_LINES:]:
        kinds = Counter(action.blocks for action in rest)
        listed = ", ".join(f"{count} {BLOCKS_TEXT[kind]}" for kind, count in kinds.items())
        yield from _wrapped(f"    and {len(rest)} more: {listed}" + (f" (see {where})" if where else ""), width)


def _wrapped(line: str, width: int) -> list[str]:
    if not width or len(line) <= width:
        return [line]
    return textwrap.wrap(
        line, width, subsequent_indent=" " * 9, break_long_words=False, break_on_hyphens=False, drop_whitespace=True,
    )  # fmt: skip


def about(hours: float) -> str:
    """A rough sum of hours in words."""
    if hours < 1:
        return "less than an hour"
    return f"about {many(round(hours), 'hour')}"


def how_many(action: Action) -> str:
    """How many places an action has, in how many files."""
    files = len({place.path for place in action.places})
    places = many(action.count, "place")
    return places if action.count == 1 else f"{places} in {many(files, 'file')}"


def place_text(place: Place) -> str:
    """The lines of a file: `train.py:3, 9`, with what is there and how often."""
    numbers = ", ".join(map(str, place.lines[:_MOST_NUMBERS]))
    more = f" and {len(place.lines) - _MOST_NUMBERS} more lines" if len(place.lines) > _MOST_NUMBERS else ""
    name = f" ({place.name})" if place.name else ""
    return f"{place.path}:{numbers}{more}{name}"


def action_object(action: Action) -> dict[str, Any]:
    """An action as JSON: described in docs/json.md."""
    return {
        "title": visible(action.title),
        "blocks": action.blocks,
        "effort": action.effort.value,
        "hours": action.hours,
        "how": visible(action.how),
        "codes": list(action.codes),
        "count": action.count,
        "places": [
            {"path": visible(place.path), "lines": list(place.lines), "count": place.count, "name": visible(place.name)}
            for place in action.places
        ],
    }
