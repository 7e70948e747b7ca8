"""Which actions of a migration a run on the emulated NPU shows: what it says of a line goes with that line's action."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Seen:
    """What a run says of a line (from 1) of the output; `path` is relative to it, with forward slashes."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


def proofs(manifest: dict[str, Any], seen: Iterable[Seen]) -> list[tuple[int, str, list[str]]]:
    """(number from 1, title, lines that prove it) of the actions in a manifest that a run shows, in their order.

    A manifest without actions, or with something else in their place, has none: it may be an older one.
    """
    told = list(dict.fromkeys(seen))
    found = []
    actions = manifest.get("actions")
    for number, action in enumerate(actions if isinstance(actions, list) else (), 1):
        lines = action.get("lines") if isinstance(action, dict) else None
        if isinstance(lines, dict) and (proven := [str(each) for each in told if _at(lines.get(each.path), each.line)]):
            found.append((number, str(action.get("title", "")), proven))
    return found


def _at(spans: Any, line: int) -> bool:
    for span in spans if isinstance(spans, list) else ():
        if isinstance(span, list) and len(span) == 2 and all(isinstance(end, int) for end in span):
            first, last = span
            if first <= line <= last:
                return True
    return False
