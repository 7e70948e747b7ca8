"""Where a program saves and loads the state of its optimizers, and what else its checkpoints hold."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from transplt.flow.facts import ProjectFacts
from transplt.program.imports import imports_of
from transplt.program.optimizers import is_optimizer_object
from transplt.program.program import Program, text_of
from transplt.syntax.files import File
from transplt.syntax.nodes import block_of, by_place, call_of, last_name, string_of
from transplt.syntax.scan import parent, statement

#: Where the state of an optimizer goes: a row of a dict display, an argument of `dict(...)`, an entry of a dict that
#: a statement of its own gives a value.
Holder = ast.Dict | ast.keyword | ast.Subscript


@dataclass(frozen=True, slots=True)
class Saved:
    """`optimizer.state_dict()`, and where it goes; None where another state cannot be put beside it."""

    call: ast.Call
    holder: Holder | None


@dataclass(frozen=True, slots=True)
class Loaded:
    """`optimizer.load_state_dict(checkpoint["optimizer"])`, and the `given` entry; None for what is no such entry."""

    call: ast.Call
    given: ast.Subscript | None


def states_saved(program: Program, file: File) -> list[Saved]:
    """The states of optimizers that a file saves, by place; of several in one checkpoint the last."""
    found: dict[object, Saved] = {}
    for call in _uses(program, file, "state_dict"):
        above = parent(call)
        if isinstance(above, ast.Call) and text_of(file, above.func).endswith("copy"):
            continue  # kept for a while, not saved
        holder = _holder(call)
        place: object = call
        if isinstance(holder, ast.Subscript):
            place = (text_of(file, holder.value), id(block_of(statement(call))))
        elif holder is not None:
            place = parent(holder) if isinstance(holder, ast.keyword) else holder
        found.pop(place, None)
        found[place] = Saved(call, holder)
    return list(found.values())


def states_loaded(program: Program, file: File) -> list[Loaded]:
    """The states of optimizers that a file loads, by place; of those a block takes from one checkpoint the last."""
    found: dict[object, Loaded] = {}
    for call in _uses(program, file, "load_state_dict"):
        given = call.args[0] if call.args else None
        stored, entry = statement(call), None
        place: object = call
        if isinstance(given, ast.Subscript):
            place = text_of(file, given.value), id(block_of(stored))
            match given:
                case ast.Subscript(value=ast.Name() | ast.Attribute(), slice=ast.Constant(value=str())):
                    entry = given if parent(call) is stored and isinstance(stored, ast.Expr) else None
        found.pop(place, None)
        found[place] = Loaded(call, entry)
    return list(found.values())


def free_key(project: ProjectFacts, own: File, names: Iterable[str]) -> str:
    """The first of the names that is no key of a checkpoint in the files that belong to `own`."""
    names = tuple(names)
    files = [own]
    group = next((group for group in imports_of(project).groups(project.sources) if own.path in group), [])
    for path in group:
        data = project.sources[path]
        if path != own.path and b"state_dict" in data and (file := project.files.read(path, data)) is not None:
            files.append(file)
    used = {key for file in files for key in _keys_in(file)}
    more = (f"{names[-1]}_{number}" for number in range(2, len(used) + 3))
    return next(name for name in (*names, *more) if name not in used)


def _uses(program: Program, file: File, method: str) -> list[ast.Call]:
    """The calls of a method of optimizers, by place."""
    calls = [(node, call) for node in file.scan.attributes.get(method, ()) if (call := call_of(node)) is not None]
    return by_place(call for node, call in calls if is_optimizer_object(program, file, node.value))


def _holder(call: ast.Call) -> Holder | None:
    match above := parent(call):
        case ast.Dict():
            return above
        case ast.keyword():
            return above if last_name(getattr(parent(above), "func", None)) == "dict" else None
        case ast.Assign(targets=[ast.Subscript() as target, *_]):
            return target
    return None


# --- keys ------------------------------------------------------------------------------------------------------------


def _keys_in(file: File) -> Iterator[str]:
    held = _checkpoints(file)
    for node in ast.walk(file.scan.tree):
        match node:
            case ast.Dict(keys=keys, values=values) if _is_checkpoint(file, node, held, values):
                yield from (key for item in keys if (key := string_of(item)) is not None)
            case ast.Call(func=ast.Name(id="dict"), keywords=words):
                if _is_checkpoint(file, node, held, [each.value for each in words]):
                    yield from (each.arg for each in words if each.arg is not None)
            case (
                ast.Subscript(value=holder, slice=key)
                | ast.Call(func=ast.Attribute(value=holder, attr="get"), args=[key, *_])
            ) if text_of(file, holder) in held:
                yield string_of(key) or ""


def _is_checkpoint(file: File, node: ast.expr, held: set[str], values: list[ast.expr]) -> bool:
    """True for a dict that holds a state, and for one that is given to a variable which does."""
    if any(isinstance(value, ast.Call) and last_name(value.func) == "state_dict" for value in values):
        return True
    above = parent(node)
    return isinstance(above, ast.Assign) and any(text_of(file, target) in held for target in above.targets)


def _checkpoints(file: File) -> set[str]:
    """The spellings of variables that hold checkpoints: what states are put into, what is saved and loaded from."""
    found: set[str] = set()
    for node in file.scan.attributes.get("state_dict", ()):
        call = call_of(node)
        stored = statement(call) if call is not None else None
        match stored:
            case ast.Assign(targets=[target, *_], value=value) if value is not call:
                found.add(text_of(file, target))
            case ast.Assign(targets=[ast.Subscript(value=holder), *_]):
                found.add(text_of(file, holder))
    for name, number in (("load_state_dict", 1), ("save", 2)):
        for node in file.scan.attributes.get(name, ()):
            call = call_of(node)
            given = call.args[0] if call is not None and len(call.args) >= number else None
            if name == "load_state_dict":
                given = given.value if isinstance(given, ast.Subscript) else None
            if isinstance(given, (ast.Name, ast.Attribute)):
                found.add(text_of(file, given))
    return found
