"""Actions as a person reads them: lines for a terminal, rows for a sheet, objects for JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from transplt.base.errors import shown
from transplt.base.finding import Effort
from transplt.engine.actions.action import Action, Place
from transplt.engine.actions.actions import total_hours
from transplt.engine.actions.groups import aside
from transplt.render.cell import many, visible

_MOST_NUMBERS = 20
_MOST_PARTS = 3
EFFORT_TEXT = {Effort.LOW: "minutes", Effort.MEDIUM: "hours", Effort.HIGH: "a day or more"}


def action_lines(actions: Sequence[Action], width: int = 0) -> Iterator[str]:
    """The actions under what they block, with the first parts of those that have any.

    `width` is that of the terminal in columns; 0 for lines of any length.
    """
    if not actions:
        return
    head = f"  to do: {many(len(actions), 'action')}, {about(total_hours(actions))}; what blocks first:"
    yield from _wrapped(head, width)
    heading = ""
    for number, action in enumerate(actions, 1):
        if action.heading != heading:
            heading = action.heading
            yield f"    {heading}"
        line = (
            f"    {number:3}. {visible(action.title)} ({EFFORT_TEXT[action.effort]}, {how_many(action)}, "
            f"{shown(action.first)})"
        )
        yield from _wrapped(line, width)
        if action.parts:
            yield from _wrapped(f"         {visible(_named(action.parts))}", width)


def _named(parts: Sequence[Action]) -> str:
    """The first things to do of several, and how many more there are."""
    more = len(parts) - _MOST_PARTS
    return "; ".join(part.title for part in parts[:_MOST_PARTS]) + (f"; and {more} more" if more > 0 else "")


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
    found = places if action.count == 1 else f"{places} in {many(files, 'file')}"
    beside = sum(aside(each) for each in action.findings if not each.path.endswith("setup.py"))  # that builds
    found += f", {beside} of them aside" if beside and not action.aside else ""
    options = sorted({finding.option for finding in action.findings})
    if "" not in options:
        found = f"{found}, only with {', '.join(options[:_MOST_PARTS])}"
    names = sorted({finding.adaptor for finding in action.findings})
    return f"{found}, `--adapt {','.join(names)}` writes it" if names and "" not in names else found


def place_text(place: Place) -> str:
    """The lines of a file: `train.py:3, 9`, with what is there and how often."""
    numbers = ", ".join(map(str, place.lines[:_MOST_NUMBERS]))
    more = f" and {len(place.lines) - _MOST_NUMBERS} more lines" if len(place.lines) > _MOST_NUMBERS else ""
    name = f" ({place.name})" if place.name else ""
    return f"{place.path}:{numbers}{more}{name}"


def action_object(action: Action) -> dict[str, Any]:
    """An action as JSON: described in docs/reference/json.md."""
    return {
        "title": visible(action.title),
        "blocks": action.blocks,
        "aside": action.aside,
        "effort": action.effort.value,
        "hours": action.hours,
        "how": visible(action.how),
        "codes": list(action.codes),
        "count": action.count,
        "places": [
            {"path": visible(place.path), "lines": list(place.lines), "count": place.count, "name": visible(place.name)}
            for place in action.places
        ],
        "parts": [action_object(part) for part in action.parts],
    }
