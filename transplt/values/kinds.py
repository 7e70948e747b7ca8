"""What a string or an expression is, by the places it reaches and the component its slot belongs to."""

from __future__ import annotations

import ast

from transplt.project.facts import GENERIC
from transplt.syntax.scan import parent
from transplt.values.place import Place
from transplt.values.slots import BACKEND, BACKEND_WORD, DEVICE, DEVICE_WORD, SELF, Flow


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


def _is_compared(node: ast.expr) -> bool:
    """True for an expression that is compared, or looked up in a table."""
    above = parent(node)
    if isinstance(above, ast.Call):
        return isinstance(above.func, ast.Attribute) and above.func.attr == "get" and above.args[:1] == [node]
    return isinstance(above, (ast.Compare, ast.Match)) or (isinstance(above, ast.Subscript) and above.slice is node)


def certain_kind(flow: Flow, node: ast.expr, wanted: str) -> bool:
    """As `is_kind`, by the form of the expression alone."""
    if isinstance(node, ast.Name):
        return False
    if isinstance(node, ast.Attribute):
        if wanted == DEVICE and node.attr == "type":
            # What is compared as `x.type` with a device is a device, unless it is a configuration with a `type` entry.
            plain = isinstance(node.value, ast.Name) and node.value.id not in SELF and node.value.id not in GENERIC
            return (plain and _is_compared(node)) or certain_kind(flow, node.value, wanted)
        return wanted == DEVICE and node.attr in ("device", "device_type", "_device")
    if isinstance(node, ast.Call):
        last = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if last == "get_backend":
            return wanted == BACKEND
        if last in ("device", "get_default_device", "current_accelerator"):
            full = flow.names.qualified(node.func) or ""
            return wanted == DEVICE and full.startswith("torch.")
        if last == "type" and not node.args and isinstance(node.func, ast.Attribute):
            return wanted == DEVICE  # the name of a tensor's type holds the device: torch.npu.FloatTensor
        if last == "str" and node.args:
            return certain_kind(flow, node.args[0], wanted)
        if last in ("lower", "strip", "split", "partition", "upper", "rsplit", "casefold"):
            inner = getattr(node.func, "value", None)
            return inner is not None and certain_kind(flow, inner, wanted)
        if last == "getattr" and len(node.args) > 1:
            key = node.args[1]
            word = DEVICE_WORD if wanted == DEVICE else BACKEND_WORD
            return isinstance(key, ast.Constant) and bool(word.search(str(key.value)))
    if isinstance(node, ast.Subscript):
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            word = DEVICE_WORD if wanted == DEVICE else BACKEND_WORD
            return bool(word.search(node.slice.value))
        return certain_kind(flow, node.value, wanted)
    if isinstance(node, ast.JoinedStr) and node.values and isinstance(node.values[0], ast.FormattedValue):
        return certain_kind(flow, node.values[0].value, wanted)
    return False
