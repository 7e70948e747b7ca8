"""`npu_port.py` in the output: written for what the migrated files call, and kept where a user has changed it."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from transplt.base.disk.manifest import edited_since, read_manifest
from transplt.base.disk.mirror import write_file
from transplt.base.disk.walk import Entry
from transplt.base.errors import UsageError, shown
from transplt.base.finding import Finding, Level, Operation, Replacement
from transplt.base.language import Sentence, marked
from transplt.base.text.regular_file import SOURCE, read_regular
from transplt.base.text.source import splice
from transplt.edits.helper import CODE
from transplt.edits.helper_file import helper_text, is_helper, missing_in
from transplt.engine.edited_lines import edited_lines
from transplt.engine.patch import new_file_diff, unified_diff
from transplt.flow.helper_place import NAME
from transplt.project.report.migration_record import HELPER, FileRecord
from transplt.project.unread_files import TOP
from transplt.project.worker import FileWorker
from transplt.syntax.files import File

_MODE = 0o644


def with_helpers(
    worker: FileWorker[FileRecord], entries: Sequence[Entry], records: Sequence[FileRecord], taken: Collection[str],
    out: str, *, patches: bool,
) -> list[FileRecord]:  # fmt: skip
    """The records of a run, and those of the modules that its files call, written into the folder `out` unless it is
    empty. UsageError where something of the input stands in the way, WriteError when one cannot be written.
    """
    made = []
    called, portable = sorted(_called(records).items()), worker.settings.style == "portable"
    speaking = {each.path for each in records if called and portable and each.tokens.found}
    shows_cards = any(b"CUDA_VISIBLE_DEVICES" in worker.read(each) for each in entries if each.path in speaking)
    for path, names in called:
        if path in taken:
            raise UsageError(f"{shown(path)} of the input has the place of the port's helper functions; use --inline")
        text = helper_text(names, portable=portable, shows_cards=shows_cards)
        made.append(new_file(path, text, CODE, _message(path, names, portable), out, patches=patches))
    return [*records, *made]


def with_additions(
    worker: FileWorker[FileRecord], entries: Sequence[Entry], records: list[FileRecord], out: str, *, patches: bool
) -> list[FileRecord]:
    """The records of a run in which modules of the portable style that were written earlier have what is called now,
    beside what they had. OSError or WriteError when one cannot be read or written.
    """
    called, found = _called(records), {entry.path: entry for entry in entries}
    done = set()
    for at, record in enumerate(records):
        path = record.path
        if path not in called or path not in found or not is_helper(path, data := worker.read(found[path])):
            continue
        done.add(path)
        file = File.of(path, data)
        message = _message(path, called[path], portable=True)
        edits = tuple(
            Finding(path, file.source.span(offset, offset), CODE, Level.SAFE, message,
                    edit=Replacement(Operation.INSERT, "", text), applied=True)
            for offset, text in missing_in(file, called[path])
        )  # fmt: skip
        pieces = [(each.span.start, each.span.end, each.edit.after.encode()) for each in edits if each.edit is not None]
        new = file.source.encode(splice(file.source.utf8, pieces))
        if out:
            os.unlink(f"{out}/{path}")
        records[at] = replace(
            record, findings=(*record.findings, *edits), changed=True, edited_lines=edited_lines(edits),
            sha256=write_file(out, path, new, found[path].mode) if out else "",
            patch=unified_diff(path, data, new, edits) if patches else b"",
        )  # fmt: skip
    return [_without(record, done) for record in records]


def _without(record: FileRecord, there: Collection[str]) -> FileRecord:
    """A record of a file that calls no module which is there."""
    if record.helper is None or not any(path in there for path in record.helper.paths):
        return record
    paths = tuple(path for path in record.helper.paths if path not in there)
    return replace(record, helper=record.helper._replace(paths=paths) if paths else None)


def _called(records: Sequence[FileRecord]) -> dict[str, set[str]]:
    """What files call of each module, by its path; modules of one program have the same."""
    called: dict[str, set[str]] = {}
    programs: dict[str, set[str]] = {}
    uses = [record.helper for record in records if record.helper is not None]
    for use in uses:
        programs.setdefault(use.program or use.paths[0], set()).update(use.names)
    for use in uses:
        for path in use.paths:
            called.setdefault(path, set()).update(use.names, programs[use.program or use.paths[0]])
    return called


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
    said = marked("new file for the port: {names}; it is part of your project now")
    if portable:
        said = marked("chooses the accelerator for the whole project: {names}; the file is part of your project now")
    elif posixpath.basename(path) != f"{NAME}.py":
        said = marked("new file for the port: {names}; it is part of your project now. It has this name "
                      "because the project has a module {module} already")  # fmt: skip
    return Sentence(said, names=", ".join(sorted(names)), module=NAME)


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
    there = [path for path in paths if (target / path).is_file() and not (target / path).is_symlink()]
    return {path: read_regular(target / path, SOURCE) for path in there}


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
            notes.append(f"{shown(path)} had been changed since it was written: your file is now {shown(name)}")
    return kept, notes
