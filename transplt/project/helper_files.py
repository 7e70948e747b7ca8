"""`npu_port.py` in the output: written for what the migrated files call, and kept where a user has changed it."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from transplt.base.disk.manifest import edited_since, read_manifest
from transplt.base.disk.mirror import write_file
from transplt.base.errors import UsageError, shown
from transplt.base.finding import Finding, Level, Operation, Replacement
from transplt.base.language import Sentence, marked
from transplt.base.text.regular_file import SOURCE, read_regular
from transplt.edits.helper import CODE
from transplt.edits.helper_file import helper_text
from transplt.engine.patch import new_file_diff
from transplt.flow.helper_place import NAME
from transplt.project.report.migration_record import HELPER, FileRecord
from transplt.project.unread_files import TOP

_MODE = 0o644


def with_helpers(
    records: Sequence[FileRecord], taken: Collection[str], out: str, *, patches: bool, portable: bool = False
) -> list[FileRecord]:
    """The records of a run, and those of the modules that its files call, written into the folder `out` unless it is
    empty; `portable` ones choose the accelerator. UsageError where something of the input stands in the way,
    WriteError when one cannot be written.
    """
    called: dict[str, set[str]] = {}
    programs: dict[str, set[str]] = {}
    for use in [record.helper for record in records if record.helper is not None]:
        together = programs.setdefault(use.program or use.paths[0], set())
        together.update(use.names)
        for path in use.paths:
            called.setdefault(path, set()).update(use.names)
    for use in [record.helper for record in records if record.helper is not None]:
        for path in use.paths:
            called[path] |= programs[use.program or use.paths[0]]
    made = []
    for path, names in sorted(called.items()):
        if path in taken:
            raise UsageError(f"{shown(path)} of the input stands where functions of the port would go; give --inline")
        text = helper_text(names, portable=portable)
        made.append(new_file(path, text, CODE, _message(path, names, portable), out, patches=patches))
    return [*records, *made]


def new_file(
    path: str, text: str, code: str, message: str, out: str, *, patches: bool, mode: int = _MODE
) -> FileRecord:
    """The record of a file that no input has, written into the folder `out` unless it is empty."""
    data = text.encode()
    edit = Replacement(Operation.INSERT, "", text)
    finding = Finding(path, TOP, code, Level.SAFE, message, edit=edit, applied=True)
    digest = write_file(out, path, data, mode) if out else ""
    patch = new_file_diff(path, data, mode) if patches else b""
    return FileRecord(path, HELPER, digest, findings=(finding,), changed=True, patch=patch)


def _message(path: str, names: Iterable[str], portable: bool) -> str:
    listed = ", ".join(sorted(names))
    if portable:
        own = marked("the accelerator, chosen once: {names}; the file belongs to the project from now on")
        return Sentence(own, names=listed)
    if posixpath.basename(path) == f"{NAME}.py":
        own = marked("helper functions of the port: {names}; the file belongs to the project from now on")
        return Sentence(own, names=listed)
    return Sentence(
        "helper functions of the port: {names}; the file belongs to the project from now on, under this name since the "
        "project has a module {module}",
        names=listed, module=NAME,
    )  # fmt: skip


# --- what a user has changed -----------------------------------------------------------------------------------------


def changed_by_user(target: Path) -> dict[str, bytes]:
    """The modules that an earlier migration wrote into an output and somebody has changed since, and those that were
    kept before, by path.
    """
    manifest = read_manifest(target) if target.is_dir() and not target.is_symlink() else None
    if manifest is None:
        return {}
    edited = {*edited_since(target, manifest)}
    paths = [path for path in manifest.get("helpers", []) if path in edited]
    paths += manifest.get("kept", [])
    found = {}
    for path in paths:
        if (target / path).is_file() and not (target / path).is_symlink():
            found[path] = read_regular(target / path, SOURCE)
    return found


def keep_beside(yours: dict[str, bytes], folder: Path, records: Iterable[FileRecord]) -> tuple[list[str], list[str]]:
    """Write what users have changed beside what is new: the paths, and a sentence for each that is new."""
    kept, notes = [], []
    taken = {record.path for record in records}
    before = {path for path in yours if ".yours" in posixpath.basename(path)}
    for path, data in sorted(yours.items(), key=lambda item: (item[0] not in before, item[0])):
        stem = path if path in before else f"{path}.yours"
        name, number = stem, 1
        while name in taken:
            number += 1
            name = f"{stem}{number}"
        taken.add(name)
        os.makedirs(folder / posixpath.dirname(name), exist_ok=True)
        write_file(str(folder), name, data, _MODE)
        kept.append(name)
        if path != name:
            notes.append(f"{shown(path)} had been changed since it was written: your file is {shown(name)} now")
    return kept, notes
