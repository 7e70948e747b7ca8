"""A place that a value reaches, and the slots in which it is stored there.

A value may travel inside containers. A *path* lists the containers around it, innermost first: an integer for the place
in a tuple, a string for the key in a mapping, None for a list, a set or anything else that is all of one kind.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from transplt.syntax.scan import parent
from transplt.values.slots import BACKEND_WORD, DEVICE_WORD, Flow

Path = tuple[int | str | None, ...]
Stack = list[tuple[ast.AST, Path]]


@dataclass(frozen=True, slots=True)
class Place:
    """One place a value reaches.

    `kind`: device, backend (certain positions); slot (`detail` is its key); compare (`other` is what it is compared
    with, `detail` how); named (an argument or entry, `detail` its name); key (subscript, `other` what is looked into);
    row (key of a dict display, `other` is the dict); foreign (another library's call); prose; help (of a flag,
    `other` is the call); flag (a command line flag); annotation; probe (a name given to getattr, hasattr);
    environment; command; kernel (which device a custom operator is for); exported (a name in `__all__`); other.
    """

    kind: str
    detail: str = ""
    other: ast.expr | None = None


def store(flow: Flow, target: ast.expr, path: Path, found: list[Place]) -> None:
    if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
        key = target.slice.value
        if isinstance(key, str):
            if flow.names.qualified(target.value) == "os.environ":
                found.append(Place("environment", key))
                return
            if hinted(key):
                found.append(Place("named", key))
                return
    if isinstance(target, ast.Name) and target.id == "__all__":
        found.append(Place("exported"))
        return
    slots = store_slots(flow, target, path)
    found += [Place("slot", slot) for slot in slots] or [Place("other", "assignment")]


def store_slots(flow: Flow, target: ast.expr, path: Path) -> list[str]:
    """The slots in which a value lands that is assigned, inside the containers of `path`, to a target."""
    if isinstance(target, ast.Starred):
        return store_slots(flow, target.value, path)
    if isinstance(target, (ast.Tuple, ast.List)):
        index = path[-1] if path else None
        starred = next((i for i, e in enumerate(target.elts) if isinstance(e, ast.Starred)), len(target.elts))
        if isinstance(index, int):
            chosen = target.elts[index : index + 1] if index < starred else target.elts[starred:]
        else:
            chosen = target.elts
        return [slot for element in chosen for slot in store_slots(flow, element, path[:-1])]
    if isinstance(target, ast.Name):
        slot = flow.variable(target.id, flow.scan.scope_of(target))
    elif isinstance(target, (ast.Attribute, ast.Subscript)):
        slot = flow.slot(target)
    else:
        slot = None
    if slot is None:
        return []
    named = target.attr if isinstance(target, ast.Attribute) else target.id if isinstance(target, ast.Name) else ""
    return [deep(slot, path, named)]


def deep(slot: str, path: Path, named: str = "") -> str:
    """The slot of a value that sits inside the containers of `path` in another slot's value."""
    outermost = True
    for step in reversed(path):
        if isinstance(step, str):
            if hinted(named or slot):
                return slot  # a mapping of devices: all of its entries are some
            slot = f"k:{named}[{step}]"
            named = step
        elif step is not None and not outermost:
            slot = f"{slot}<{step}>"
        outermost = False
    return slot


def hinted(name: str) -> bool:
    """True for a name that speaks of devices or backends."""
    return bool(DEVICE_WORD.search(name) or BACKEND_WORD.search(name))


def is_map_location(node: ast.AST) -> bool:
    """True for the dict that `map_location=` gets: which device of a checkpoint goes where."""
    above = parent(node)
    if isinstance(above, ast.keyword):
        return above.arg == "map_location"
    if isinstance(above, ast.Assign):
        return any(isinstance(t, ast.Name) and "map_location" in t.id for t in above.targets)
    return False
