"""Actions as rows of a sheet or a CSV file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from transplt.base.efforts import EFFORT_TEXT
from transplt.base.render.cell import cell
from transplt.engine.actions.action import Action
from transplt.project.report.action_lines import place_text

ACTION_COLUMNS = ("No.", "Blocks", "What to do", "Effort", "Hours", "Places", "Files", "Where", "How", "Codes")
ACTION_WIDTHS = (6, 22, 70, 14, 8, 8, 8, 60, 110, 30)


def action_rows(actions: Sequence[Action]) -> Iterator[tuple[str | int | float, ...]]:
    """One row for each action, in their order, and one for each of its parts; `Where` has a line for each file."""
    numbered: list[tuple[int | str, Action]] = []
    for number, action in enumerate(actions, 1):
        numbered.append((number, action))
        numbered += [(f"{number}.{place}", part) for place, part in enumerate(action.parts, 1)]
    for each, action in numbered:
        yield (
            each, action.heading.partition(":")[0], cell(action.title), EFFORT_TEXT[action.effort], action.hours,
            action.lines, len({place.path for place in action.places}),
            cell("; ".join(place_text(place) for place in action.places)), cell(action.how), ", ".join(action.codes),
        )  # fmt: skip
