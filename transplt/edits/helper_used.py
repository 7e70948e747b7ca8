"""What a file calls of the module with the functions of a port, read off the text that was written."""

from __future__ import annotations

import ast

from transplt.base.finding import HelperUse
from transplt.base.settings import Settings
from transplt.edits.helper import only_tries_itself, starts_something
from transplt.edits.helper_source import public_names
from transplt.flow.accelerator_place import NOTEBOOK, is_added_to, module_place
from transplt.flow.facts import ProjectFacts
from transplt.flow.helper_place import NAME, HelperPlace, program_of


def used_of_helper(
    data: bytes, path: str, settings: Settings, project: ProjectFacts | None, *, before: bytes
) -> HelperUse | None:
    """The functions that a file calls, and where the module is to be written for it; None where it calls none, or the
    project has it. `before`: what the file was when its edits were worked out.
    """
    if not settings.helper_file or project is None or not path.endswith((".py", NOTEBOOK)):
        return None
    if data == before if settings.style == "portable" else NAME.encode() not in data:
        return None
    try:
        tree, original = ast.parse(data), ast.parse(before)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    tried = settings.style == "portable" and only_tries_itself(original, before)
    place = module_place(project, path, settings, starts=starts_something(original), tried=tried)
    if place is None or not place.paths or (place.there is not None and not is_added_to(project, settings, place)):
        return None
    names = tuple(name for name in _called(tree, place) if name not in (place.there or ()))
    alone = bool(place.package) or path.endswith(NOTEBOOK)
    return HelperUse(place.paths, names, "" if alone else program_of(project, path)) if names else None


def _called(tree: ast.Module, place: HelperPlace) -> tuple[str, ...]:
    """The names that are taken from the module, sorted."""
    local: set[str] = set()
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            local.update(alias.asname or alias.name for alias in node.names if alias.name == place.module)
        elif isinstance(node, ast.ImportFrom):
            local.update(alias.asname or alias.name for alias in node.names if alias.name == place.module)
            if (node.module or "").rpartition(".")[2] == place.module:
                found.update(alias.name for alias in node.names)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in local:
            found.add(node.attr)
    return tuple(sorted(found & {*public_names()}))
