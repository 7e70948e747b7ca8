"""The files that work together with one: those that it imports, those that import it, and so on, as one program."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from transplt.edits.work import Work
from transplt.flow.facts import ProjectFacts
from transplt.program.files import File, read_file
from transplt.program.imports import imports_of
from transplt.program.program import Program, program_of

#: Where a node stands: path, line, column, last line, last column. It names a node in two parses of a file.
Key = tuple[str, int, int, int, int]
#: Files without any of these words say nothing about how a model trains, and with what data.
_WORDS = re.compile(
    rb"jit.script|optim|zero_grad|\.grad\b|backward|parameters\(|__main__|DataLoader"
    rb"|share_memory|requires_grad|set_default_|from_pretrained|find_unused|bucket_view|deepspeed|accelerate|lightning"
)


@dataclass(slots=True)
class Reach:
    """The programs of a project: files that have nothing to do with each other are in different ones."""

    project: ProjectFacts
    sources: dict[str, bytes]
    programs: dict[str, Program] = field(default_factory=dict)  # by path
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


def _read(reach: Reach) -> None:
    files: dict[str, File] = {}
    for path, data in sorted(reach.sources.items()):
        if path.endswith("__init__.py") or _WORDS.search(data):
            file = read_file(path, data)
            if file is not None:
                files[path] = file
    for group in imports_of(reach.project).groups(files):
        program = program_of([files[path] for path in group], reach.project)
        reach.programs.update((path, program) for path in group)
