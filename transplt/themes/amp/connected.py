"""Which files of a project a file imports, and which import it, from the text of all (`ProjectFacts.sources`)."""

from __future__ import annotations

import ast
import re

from transplt.project.facts import ProjectFacts
from transplt.syntax.modules import import_base

_IMPORT = re.compile(rb"^[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]+(.*)|import[ \t]+([\w., \t]+))", re.M)
_WORDS = re.compile(r"\w+")
#: The graph of the project that was asked about last; a project has one for all its files.
_LAST: list[tuple[ProjectFacts, dict[str, frozenset[str]]]] = []


def imports_of(project: ProjectFacts) -> dict[str, frozenset[str]]:
    """Path -> paths that it imports. `from` lists that go over several lines give their module only."""
    if _LAST and _LAST[0][0] is project:
        return _LAST[0][1]
    graph = {path: frozenset(_imports(project, path, data)) for path, data in project.sources.items()}
    _LAST[:] = [(project, graph)]
    return graph


def reached(project: ProjectFacts, path: str) -> list[str]:
    """The files that a file imports, directly or through others, sorted; without itself."""
    return _closure(imports_of(project), path)


def importers(project: ProjectFacts, path: str) -> list[str]:
    """The files that import a file, directly or through others, sorted; without itself."""
    turned: dict[str, set[str]] = {}
    for source, targets in imports_of(project).items():
        for target in targets:
            turned.setdefault(target, set()).add(source)
    return _closure({source: frozenset(targets) for source, targets in turned.items()}, path)


def entry_of(project: ProjectFacts, path: str) -> str:
    """The file from which to read a program that holds `path`: one that imports it and that nobody imports."""
    above = importers(project, path)
    return next((item for item in above if not importers(project, item)), path)


def _closure(graph: dict[str, frozenset[str]], path: str) -> list[str]:
    seen, pending = {path}, [path]
    while pending:
        for target in graph.get(pending.pop(), ()):
            if target not in seen:
                seen.add(target)
                pending.append(target)
    return sorted(seen - {path})


def _imports(project: ProjectFacts, path: str, data: bytes) -> set[str]:
    found: set[str] = set()
    for match in _IMPORT.finditer(data):
        module, names, plain = (part.decode("utf-8", "replace") if part else "" for part in match.groups())
        targets = [word.split()[0] for word in plain.split(",") if word.strip()]
        if module:
            level = len(module) - len(module.lstrip("."))
            base = import_base(path, ast.ImportFrom(module.lstrip(".") or None, [], level))
            head = names.partition(" as ")[0] if "," not in names else names
            targets = [base, *(f"{base}.{name}" if base else name for name in _WORDS.findall(head))]
        for target in targets:
            name = project.canonical(target)
            while name and name not in project.modules:
                name = name.rpartition(".")[0]
            if name and project.modules[name] != path and project.modules[name] in project.sources:
                found.add(project.modules[name])
    return found
