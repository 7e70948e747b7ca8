"""Recorded operators that are known to give wrong numbers without an error on an NPU, beside what differs.

Facts: rules/support/silent_errors.json. A row whose condition the record shows not to hold is left out; where the
record cannot tell, as of arguments by position, it is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from transplt.base.render.cell import visible
from transplt.precision.record import Row
from transplt.rules.silent_errors import Given, SilentError, errors_of_recorded, holds


def known_of(row: Row) -> list[SilentError]:
    """The rows of the table that may hold for a recorded call."""
    return [each for each in errors_of_recorded(row.api) if holds(each, lambda name: _argument(row, name)) is not False]


def known_lines(rows: Iterable[Row]) -> list[str]:
    """A line for each operator among the rows that has known silent errors, each told once."""
    told: dict[str, str] = {}
    for row in rows:
        for error in known_of(row):
            text = f"known of {row.api.rpartition('.')[2]} on NPUs: {error.text()}; {error.do} ({error.source})"
            told.setdefault(error.id, visible(text))
    return [*told.values()]


def rows_called(rows: Sequence[Row], names: Iterable[str]) -> list[Row]:
    """The forward rows of the calls that rows of these names belong to."""
    calls = {name.replace("backward", "forward") for name in names}
    return [row for row in rows if row.name in calls]


def _argument(row: Row, name: str) -> Given | None:
    """What a record says of an argument: only those that were given by their names have one."""
    found = next((tensor for tensor in row.inputs if tensor.name == f"kwargs.{name}"), None)
    if found is None:
        return Given() if any(not tensor.name.startswith("kwargs.") for tensor in row.inputs[1:]) else None
    if found.is_tensor:
        return Given(shape=found.shape)
    if found.dtype in ("int", "bool", "float") and found.max is not None:
        return Given(known=True, value=found.max)
    return Given(known=True) if found.dtype in ("None", "NoneType") else Given()
