"""Whether a string or an expression is a device or a backend: by its form, its slot, or the places it reaches.

`wanted` is the mark that is asked for, DEVICE or BACKEND.
"""

from __future__ import annotations

import ast

from transplt.flow.callees import HOSTS, SIMULATOR_DEVICE
from transplt.flow.marks import BACKEND, DEVICE, GENERIC, WORDS
from transplt.flow.reached_place import ReachedPlace
from transplt.flow.slots import Slots
from transplt.syntax.names import SELF
from transplt.syntax.nodes import last_name, string_of
from transplt.syntax.scan import parent


def verdict(slots: Slots, found: list[ReachedPlace], wanted: str) -> str:
    """What the places of a string say together: `wanted`, or the kind of place that keeps the string, or ""."""
    kinds = {place.kind for place in found}
    if "simulator" in kinds or any(
        place.kind in ("slot", "named") and SIMULATOR_DEVICE.search(place.detail) for place in found
    ):
        return "simulator"
    if "foreign" in kinds:
        return "foreign"
    kind = _kind_of_all(slots, found, wanted, kinds)
    if kind == wanted == DEVICE:  # a file that imports `bpy` and not torch is run by Blender
        modules = {alias.name for node in slots.scan.imports if isinstance(node, ast.Import) for alias in node.names}
        modules |= {node.module or "" for node in slots.scan.imports if isinstance(node, ast.ImportFrom)}
        roots = {module.partition(".")[0] for module in modules}
        return kind if HOSTS.isdisjoint(roots) or "torch" in roots else "simulator"
    return kind


def _kind_of_all(slots: Slots, found: list[ReachedPlace], wanted: str, kinds: set[str]) -> str:
    for place in found:
        if place.kind == wanted:
            return wanted
        if place.kind == "slot" and wanted in slots.marks_of(place.detail):
            return wanted
        if place.kind == "named" and WORDS[wanted].search(place.detail):
            return wanted
        if place.kind == "compare" and place.other is not None and holds(slots, place.other, wanted):
            return wanted
    for kind in ("key", "row", "flag", "probe", "kernel", "annotation", "environment", "exported", "command"):
        if kind in kinds:
            return kind
    if kinds == {"path"}:
        return "path"
    return "prose" if kinds and kinds <= {"prose", "help"} else ""


def holds(slots: Slots, node: ast.expr, wanted: str) -> bool:
    """True when an expression is known to hold a device (or its type), or a backend's name."""
    if holds_by_form(slots, node, wanted):
        return True
    slot = slots.of(node)
    return slot is not None and wanted in slots.marks_of(slot)


def holds_by_form(slots: Slots, node: ast.expr, wanted: str) -> bool:
    """As `holds`, by the form of the expression alone."""
    if isinstance(node, ast.Name):
        return False
    if isinstance(node, ast.Attribute):
        if wanted == DEVICE and node.attr == "type":
            # What is compared as `x.type` with a device is a device, unless it is a configuration with a `type` entry.
            plain = isinstance(node.value, ast.Name) and node.value.id not in SELF and node.value.id not in GENERIC
            return (plain and _is_compared(node)) or holds_by_form(slots, node.value, wanted)
        return wanted == DEVICE and node.attr in ("device", "device_type", "_device")
    if isinstance(node, ast.Call):
        return _gives(slots, node, wanted)
    if isinstance(node, ast.Subscript):
        entry = string_of(node.slice)
        return bool(WORDS[wanted].search(entry)) if entry is not None else holds_by_form(slots, node.value, wanted)
    if isinstance(node, ast.JoinedStr) and node.values and isinstance(node.values[0], ast.FormattedValue):
        return holds_by_form(slots, node.values[0].value, wanted)
    return False


def _gives(slots: Slots, call: ast.Call, wanted: str) -> bool:
    """True for a call that gives a device or a backend, or a part of one."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    match last_name(call.func):
        case "get_backend":
            return wanted == BACKEND
        case "device" | "get_default_device" | "current_accelerator":
            return wanted == DEVICE and (slots.names.qualified(call.func) or "").startswith("torch.")
        case "type" if not call.args and owner is not None:
            return wanted == DEVICE  # the name of a tensor's type holds the device: torch.npu.FloatTensor
        case "str" if call.args:
            return holds_by_form(slots, call.args[0], wanted)
        case "lower" | "strip" | "split" | "partition" | "upper" | "rsplit" | "casefold":
            return owner is not None and holds_by_form(slots, owner, wanted)
        case "getattr" if len(call.args) > 1:
            named = string_of(call.args[1]) or ""
            return bool(WORDS[wanted].search(last_name(call.args[0]) if named == "type" else named))
    return False


def _is_compared(node: ast.expr) -> bool:
    """True for an expression that is compared, or looked up in a table."""
    match parent(node):
        case ast.Call(func=ast.Attribute(attr="get"), args=[key, *_]) | ast.Subscript(slice=key):
            return key is node
        case ast.Compare() | ast.Match():
            return True
    return False
