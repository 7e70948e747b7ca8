"""Classes of the project in which `cuda` or `is_cuda` is something else than that of a tensor or a module."""

from __future__ import annotations

import ast

from transplt.flow.slots import Slots
from transplt.syntax.names import SELF
from transplt.syntax.nodes import is_property, last_name
from transplt.syntax.scan import FUNCTIONS

_MOVES = frozenset({"cuda", "to", "cpu", "npu", "device", "is_cuda", "_apply", "map"})


def own_cuda(slots: Slots) -> set[str]:
    """`Class.is_cuda` for each class that stores an attribute of that name, `Class.cuda` for each whose method of that
    name moves nothing; by the full names of the classes.
    """
    scan, found = slots.scan, set[str]()
    for node in scan.attributes.get("is_cuda", ()):
        if isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name) and node.value.id in SELF:
            owner = slots.own.class_around(node)
            if owner is not None:
                found.add(f"{owner}.is_cuda")
    for each in scan.classes:
        scope = scan.scopes[each]
        full = slots.own.full_name(scope)
        if any(binding.kind == "assign" for binding in scope.bindings.get("is_cuda", ())):
            found.add(f"{full}.is_cuda")
        if is_without_torch(slots, each):
            found.add(f"{full}.cuda")
    return found


def own_moves(slots: Slots) -> frozenset[str]:
    """The full names of classes with a method `cuda` of their own: those of the file, and those of its project whose
    method takes a device.
    """
    scopes = (slots.scan.scopes[each] for each in slots.scan.classes)
    here = {slots.own.full_name(scope) for scope in scopes if "cuda" in scope.bindings}
    return frozenset(here | {name[:-5] for name in slots.project.parameters if name.endswith(".cuda")})


def is_without_torch(slots: Slots, node: ast.ClassDef) -> bool:
    """True for a class with a method `cuda` that has nothing to do with torch: neither its file, its bases nor it."""
    bindings = slots.scan.scopes[node].bindings.get("cuda", ())
    methods = [binding.node for binding in bindings if isinstance(binding.node, FUNCTIONS)]
    if not methods or any(is_property(method) for method in methods) or slots.scan.root.stars:
        return False
    if any(last_name(base) not in ("object", "ABC", "NamedTuple", "Enum", "str", "int") for base in node.bases):
        return False
    imported = (binding.target for found in slots.scan.root.bindings.values() for binding in found)
    roots = {target.partition(".")[0] for target in imported} - {"torch_npu"}  # which an edit may have brought
    if any(root.startswith("torch") for root in roots):
        return False
    for inner in (inner for method in methods for inner in ast.walk(method)):
        match inner:  # torch's own moves the object: it hands on, or gives itself back
            case ast.Return(value=ast.Name(id=name)) if name in SELF:
                return False
            case ast.Attribute(attr=name) if name in _MOVES:
                return False
    return True
