"""Files of a project, parsed once for all that read programs."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from transplt.base.text.source import Source, UnreadableSource, read_source
from transplt.edits.work import Work
from transplt.flow.facts import ProjectFacts
from transplt.syntax.modules import module_name
from transplt.syntax.names import Names
from transplt.syntax.parse import parse
from transplt.syntax.scan import Scan, scan


@dataclass(slots=True, eq=False)
class File:
    """One parsed file of the program."""

    path: str
    source: Source
    scan: Scan
    names: Names

    @property
    def module(self) -> str:
        return module_name(self.path)


#: The files of the project that was asked about last, with names that are known through its other files.
_OF: list[tuple[ProjectFacts, dict[str, File]]] = []


def own_file(work: Work) -> File:
    """The file on the bench as one of a program."""
    return _same(work.project, File(work.scan.path, work.source, work.scan, work.names))


def file_of(project: ProjectFacts, path: str) -> File | None:
    """A file of a project, parsed; None for one that cannot be read."""
    file = read_file(path, project.sources.get(path, b""))
    if file is None:
        return None
    return _same(project, File(path, file.source, file.scan, Names(file.scan, project.reexports)))


def _same(project: ProjectFacts, file: File) -> File:
    """The one that stands for a file of a project, as long as its nodes are the same."""
    if not _OF or _OF[0][0] is not project:
        _OF[:] = [(project, {})]
    files = _OF[0][1]
    known = files.get(file.path)
    if known is None or known.scan is not file.scan:
        known = files[file.path] = file
    return known


#: Files that were read, by path, for the other files of their project; what was read first goes where the limit is met.
_KEPT: dict[str, tuple[bytes, File]] = {}
_KEPT_LIMIT = 64_000_000  # bytes of source
_kept_bytes = 0


def read_file(path: str, data: bytes) -> File | None:
    """A parsed file, None for one that cannot be read."""
    kept = _KEPT.get(path)
    if kept is not None and kept[0] == data:
        return kept[1]
    try:
        source = read_source(data)
        found = scan(source, parse(source), path)
    except UnreadableSource:
        return None
    file = File(path, source, found, Names(found))
    _keep(path, data, file)
    return file


def _keep(path: str, data: bytes, file: File) -> None:
    global _kept_bytes
    _forget(path)
    while _KEPT and _kept_bytes + len(data) > _KEPT_LIMIT:
        _forget(next(iter(_KEPT)))
    _KEPT[path] = (data, file)
    _kept_bytes += len(data)


def _forget(path: str) -> None:
    global _kept_bytes
    if (kept := _KEPT.pop(path, None)) is not None:
        _kept_bytes -= len(kept[0])


def names_and_attributes(file: File) -> list[ast.Name | ast.Attribute]:
    """All names of a file, and behind them all attributes."""
    scan = file.scan
    return [node for groups in (scan.names, scan.attributes) for group in groups.values() for node in group]
