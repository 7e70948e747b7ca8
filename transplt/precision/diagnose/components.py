"""Which part speaks in a failure that nobody knows, what to collect for those who can tell, and where to ask."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from transplt.base.render.cell import visible
from transplt.precision.diagnose.anchors import CANN, NUMBER, TORCH_NPU
from transplt.precision.diagnose.findings import Failure
from transplt.rules.errors import Kind
from transplt.rules.tables import read_table

#: Of the frames, those that are nearest to the error say whose it is.
_LAST_FRAMES = 3


@dataclass(frozen=True, slots=True)
class Component:
    """A part, by what of the failure it was told, what to collect, and where to ask."""

    name: str
    by: str
    collect: tuple[str, ...]
    ask: str


def component_of(failure: Failure, read: bool) -> Component | None:
    """The part that speaks; None for a failure whose row, or form where it was `read`, says itself what to do."""
    error = failure.head.error
    if read or (error is not None and error.kind not in (Kind.WRAPPER, Kind.AFTERMATH) and error.area != "general"):
        return None
    table: dict[str, Any] = read_table("support/error_components.json")
    said = "\n".join((failure.head.text, *(line.text for line in failure.first.lines), *failure.first.details))
    # The text of the error says more than any frame, and of these the last one most.
    places = (said, *(frame.path for frame in failure.first.frames[::-1][:_LAST_FRAMES]))
    by_code = ((f"the code {code}", row) for code in _codes_in(said) for row in table["components"]
               if code.startswith(tuple(row["codes"])))  # fmt: skip
    by_place = ((match[0].strip("/\\"), row) for place in places for row in table["components"]
                if (match := re.search(row["places"], place)) is not None)  # fmt: skip
    by, row = next(chain(by_code, by_place), ("", table["otherwise"]))
    return Component(row["name"], visible(by), (*row["collect"], *table["always"]), row["ask"])


def _codes_in(said: str) -> Iterator[str]:
    """CANN's codes, then those of torch_npu, then acl's numbers: the order in which they are near to the cause."""
    yield from (match[1] for match in CANN.finditer(said))
    yield from (f"ERR{match[1]}{match[2]}" for match in TORCH_NPU.finditer(said) if match[2] != "100")
    yield from (match[1] for match in NUMBER.finditer(said))
