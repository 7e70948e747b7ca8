"""The files that work together with one: those that it imports, those that import it, and so on, as one program."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from transplt.edits.work import Work
from transplt.program.program import File, Program, imported_paths, paths_of, program_of, read_file
from transplt.project.facts import ProjectFacts
from transplt.syntax.modules import import_base

#: Where a node stands: path, line, column, last line, last column. It names a node in two parses of a file.
Key = tuple[str, int, int, int, int]
#: Files without any of these words say nothing about how a model trains, and with what data.
_WORDS = re.compile(
    rb"jit.script|optim|zero_grad|\.grad\b|backward|parameters\(|__main__|DataLoader"
    rb"|share_memory|requires_grad|set_default_|from_pretrained|find_unused|bucket_view|deepspeed|accelerate|lightning"
)
_IMPORT = re.compile(rb"^[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import\b([^\n#]*)|import[ \t]+([.\w]+))", re.MULTILINE)


@dataclass(slots=True)
class Reach:
    """The programs of a project: files that have nothing to do with each other are in different ones."""

    project: ProjectFacts
    sources: dict[str, bytes]
    programs: dict[str, Program] = field(default_factory=dict)  # by path
    imported: set[str] = field(default_factory=set)  # paths that other files import
    kept: dict[tuple[str, int], object] = field(default_factory=dict)  # what others worked out about a program


_LAST: list[Reach] = []


def reach_of(work: Work) -> Reach:
    """The programs around the file on the bench; the same object for all files of a project."""
    sources = work.project.sources or {work.scan.path: work.source.encode(work.source.utf8)}
    if _LAST and _LAST[0].project is work.project and _LAST[0].sources == sources:
        return _LAST[0]
    found = Reach(work.project, dict(sources))
    _read(found)
    _LAST[:] = [found]
    return found


def program_around(work: Work) -> Program | None:
    """The program that the file on the bench is part of; its nodes are of another parse, see `key`."""
    return reach_of(work).programs.get(work.scan.path)


def key(path: str, node: ast.expr | ast.stmt) -> Key:
    """Where a node stands."""
    return (path, node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)


def _imports(path: str, data: bytes, project: ProjectFacts) -> Iterator[str]:
    """The files of the project that a file imports, read line by line: it says nothing else here."""
    for found in _IMPORT.finditer(data):
        if found[3]:
            yield from paths_of(project, found[3].decode("ascii", "replace"))
            continue
        module = found[1].decode("ascii", "replace")
        node = ast.ImportFrom(module.lstrip(".") or None, [], len(module) - len(module.lstrip(".")))
        base = import_base(path, node)
        for name in re.findall(rb"\w+", found[2]) or [b""]:
            yield from paths_of(project, f"{base}.{name.decode()}" if name else base)


def _read(reach: Reach) -> None:
    files: dict[str, File] = {}
    for path, data in sorted(reach.sources.items()):
        if path.endswith("__init__.py") or _WORDS.search(data):
            file = read_file(path, data)
            if file is not None:
                files[path] = file
        else:
            reach.imported.update(other for other in _imports(path, data, reach.project) if other != path)
    root: dict[str, str] = {path: path for path in files}

    def find(path: str) -> str:
        while root[path] != path:
            path = root[path]
        return path

    for path, file in files.items():
        for other in imported_paths(file, reach.project):
            if other != path:
                reach.imported.add(other)
            if other in files:
                low, high = sorted((find(path), find(other)))
                root[high] = low
    groups: dict[str, list[File]] = {}
    for path, file in files.items():
        groups.setdefault(find(path), []).append(file)
    for group in groups.values():
        program = program_of(group, reach.project)
        for file in group:
            reach.programs[file.path] = program
