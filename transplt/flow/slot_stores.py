"""Where an assignment puts its value."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from transplt.flow.marks import names_a_mark
from transplt.flow.reached_place import Path, ReachedPlace
from transplt.flow.slots import Slots
from transplt.syntax.nodes import last_name, starred_at, string_of
from transplt.syntax.scan import parent


def stored(slots: Slots, target: ast.expr, path: Path) -> Iterator[ReachedPlace]:
    """The places of a value that is assigned, inside the containers of `path`, to a target."""
    if isinstance(target, ast.Subscript) and (key := string_of(target.slice)) is not None:
        if slots.names.qualified(target.value) == "os.environ":
            yield ReachedPlace("environment", key)
            return
        if names_a_mark(key):
            yield ReachedPlace("named", key)
            return
    if isinstance(target, ast.Name) and target.id == "__all__":
        yield ReachedPlace("exported")
        return
    reached = store_slots(slots, target, path)
    yield from (ReachedPlace("slot", slot) for slot in reached)
    if not reached:
        yield ReachedPlace("other", "assignment")


def store_slots(slots: Slots, target: ast.expr, path: Path) -> list[str]:
    """The slots in which a value lands that is assigned, inside the containers of `path`, to a target."""
    if isinstance(target, ast.Starred):
        return store_slots(slots, target.value, path)
    if isinstance(target, (ast.Tuple, ast.List)):
        index = path[-1] if path else None
        starred = starred_at(target)
        if isinstance(index, int) and index < 0:  # from the end
            chosen = target.elts[index:][:1] if starred == len(target.elts) else target.elts
        elif isinstance(index, int):
            chosen = target.elts[index : index + 1] if index < starred else target.elts[starred:]
        else:
            chosen = target.elts
        return [slot for element in chosen for slot in store_slots(slots, element, path[:-1])]
    slot = slots.of(target) if isinstance(target, (ast.Name, ast.Attribute, ast.Subscript)) else None
    return [] if slot is None else [inside(slot, path, last_name(target))]


def inside(slot: str, path: Path, named: str = "") -> str:
    """The slot of a value that sits inside the containers of `path` in another slot's value.

    `named`: what the outermost container is called; entries of mappings are known by that name.
    """
    outermost = True
    for step in reversed(path):
        if isinstance(step, str):
            if names_a_mark(named or slot):
                return slot  # a mapping of devices: all of its entries are some
            slot = f"k:{named}[{step}]"
            named = step
        elif step is not None and not outermost:
            slot = f"{slot}<{step}>"
        outermost = False
    return slot


def is_map_location(node: ast.AST) -> bool:
    """True for the dict that `map_location=` gets: which device of a checkpoint goes where."""
    match parent(node):
        case ast.keyword(arg="map_location"):
            return True
        case ast.Assign(targets=targets):
            return any(isinstance(each, ast.Name) and "map_location" in each.id for each in targets)
    return False
