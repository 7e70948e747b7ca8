"""The two programs as they are read: their files, their statements, and a copy of a port to be checked."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from transplt.base.disk.git_index import find_repository
from transplt.base.disk.git_objects import commit_of
from transplt.base.disk.manifest import CHANGE_LIST, LOG, PAGE, TOKENS, UNSUPPORTED, read_manifest, reports_of
from transplt.base.disk.walk import walk
from transplt.base.errors import UsageError, shown
from transplt.base.text.regular_file import OTHER, SOURCE, read_regular
from transplt.base.text.source import UnreadableSource, read_source
from transplt.project.judging.statements import Statement, statements_of
from transplt.project.port.port import export
from transplt.syntax.parse import parse

_PYTHON = (".py", ".pyw")
#: The word of a comment that switches findings off, in Python and elsewhere.
IGNORES = re.compile(rb"transplt(?=\s*[:=-]*\s*[a-z])", re.IGNORECASE)
#: What a migration reports into its output, and nobody runs.
_REPORTS = frozenset((CHANGE_LIST, TOKENS, UNSUPPORTED, LOG, PAGE))


@dataclass(slots=True)
class Side:
    """A program: its folder, and its files with their bytes. `unread` are those that nobody can read, and why."""

    root: Path
    files: dict[str, bytes] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    _statements: dict[str, list[Statement]] = field(default_factory=dict)

    @property
    def python(self) -> list[str]:
        return [path for path in self.files if path.endswith(_PYTHON)]

    def statements(self, path: str) -> list[Statement]:
        """The statements of a file; none where there is none, or it cannot be read, which `unread` says."""
        if path.endswith(_PYTHON) and path in self.files and path not in self._statements:
            self._statements[path] = []
            try:
                self._statements[path] = statements_of(parse(read_source(self.files[path])), path)
            except UnreadableSource as error:
                self.unread[path] = error.reason
            except RecursionError:
                self.unread[path] = "nested too deeply"
        return self._statements.get(path, [])


def read_side(root: Path) -> Side:
    """The program in a folder. UsageError where that cannot be listed."""
    side = Side(root)
    found = walk(root, skip=_REPORTS & reports_of(root, read_manifest(root)))
    for entry in found.files:
        try:
            side.files[entry.path] = read_regular(root / entry.path, SOURCE if entry.is_python else OTHER)
        except OSError as error:
            side.unread[entry.path] = error.strerror or str(error)
    side.unread |= dict(found.unreadable) | {each.path: each.reason for each in found.left_out if not each.size}
    return side


def folder_of(given: str, scratch: Path, beside: str) -> Path:
    """The folder that is meant: one on the disk, or a commit of the repository of `beside`, written to `scratch`.

    UsageError where it is neither."""
    if os.path.isdir(given):
        return Path(os.path.realpath(given))
    folder = Path(os.path.realpath(beside if os.path.isdir(beside) else "."))
    top = find_repository(folder)
    commit = commit_of(Path(os.path.realpath(top)), given) if top is not None else ""
    if top is None or not commit:
        raise UsageError(f"{shown(given)} is no folder, and no commit of the repository of {shown(folder)}")
    export(top, commit, (scratch,))
    inside = scratch / folder.relative_to(os.path.realpath(top))
    if not inside.is_dir():
        raise UsageError(f"the commit {shown(given)} has no folder {shown(folder.name)}")
    return inside


def copy_to_check(port: Side, folder: Path) -> None:
    """The files of a port without what would switch off findings about them: comments, settings, records of ours."""
    for path, data in port.files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(IGNORES.sub(b"_" * 8, data))

