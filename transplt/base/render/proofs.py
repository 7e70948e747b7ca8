"""Which actions of a migration a run on the emulated NPU shows: what it says of a line goes with that line's action."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from transplt.base.grouped import grouped


@dataclass(frozen=True, slots=True)
class Seen:
    """What a run says of a line (from 1) of the output; `path` is relative to it, with forward slashes. `called` is
    the installed package in which the line stopped.
    """

    path: str
    line: int
    text: str
    called: str = ""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


def proofs(manifest: dict[str, Any], seen: Iterable[Seen]) -> list[tuple[int, str, list[str]]]:
    """(number from 1, title, lines that prove it) of the actions in a manifest that a run shows, in their order.

    Of several actions of one line those count whose API is named, where there is one; of a line without an action those
    about the package in which it stopped, where that is not torch. A manifest may be an older one, without actions.
    """
    rows = manifest.get("actions")
    actions = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    proven = grouped((number, str(each)) for each in dict.fromkeys(seen) for number in _about(actions, each))
    found = []
    for place, lines in sorted(proven.items()):
        own = actions[place].get("number")
        found.append((own if isinstance(own, int) else place + 1, str(actions[place].get("title", "")), lines))
    return found


def _about(actions: list[dict[str, Any]], seen: Seen) -> list[int]:
    held = (action.get("apis") for action in actions)
    apis = [[*map(str, each)] if isinstance(each, list) else [] for each in held]
    here = [number for number, action in enumerate(actions) if _at(action.get("lines"), seen)]
    named = [number for number in here if any(api in seen.text for api in apis[number])]
    if here or seen.called in ("", "torch", "torch_npu"):
        return named or here
    return [number for number, each in enumerate(apis) if any(api.startswith(f"{seen.called}.") for api in each)]


def _at(lines: Any, seen: Seen) -> bool:
    spans = lines.get(seen.path) if isinstance(lines, dict) else None
    for span in spans if isinstance(spans, list) else ():
        match span:
            case [int() as first, int() as last] if first <= seen.line <= last:
                return True
    return False
