"""What a string or an expression is, by the places it reaches and the component its slot belongs to."""

from __future__ import annotations

import ast

from transplt.destinations import Place, certain_kind
from transplt.slots import BACKEND_WORD, DEVICE, DEVICE_WORD, Flow


def verdict(flow: Flow, found: list[Place], wanted: str) -> str:
    """What the places say together: `wanted` (device or backend), or the kind of place that keeps the string, or ""."""
    kinds = {place.kind for place in found}
    if "foreign" in kinds:
        return "foreign"
    word = DEVICE_WORD if wanted == DEVICE else BACKEND_WORD
    for place in found:
        if place.kind == wanted:
            return wanted
        if place.kind == "slot" and wanted in flow.marks_of(place.detail):
            return wanted
        if place.kind == "named" and word.search(place.detail):
            return wanted
        if place.kind == "compare" and place.other is not None and is_kind(flow, place.other, wanted):
            return wanted
    for kind in ("key", "row", "flag", "probe", "kernel", "annotation", "environment", "exported", "command"):
        if kind in kinds:
            return kind
    return "prose" if kinds and kinds <= {"prose", "help"} else ""


def is_kind(flow: Flow, node: ast.expr, wanted: str) -> bool:
    """True when an expression is known to hold a device (or its type), or a backend's name."""
    if certain_kind(flow, node, wanted):
        return True
    slot = flow.slot(node)
    return slot is not None and wanted in flow.marks_of(slot)
