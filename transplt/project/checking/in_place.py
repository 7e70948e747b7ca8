"""Writes the edits of `check --fix` into the files: whole files or not at all, and only what git can undo."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from transplt.base.disk.git_command import status
from transplt.base.disk.git_index import find_repository
from transplt.base.disk.replace import remove_unfinished, replace_file
from transplt.base.errors import CannotFinish, UsageError, reason, shown
from transplt.base.text.regular_file import NOTEBOOKS, read_regular
from transplt.project.report.check_results import ChangedFile


def refuse_uncommitted(changes: Iterable[ChangedFile]) -> None:
    """UsageError when a repository around the files has changes that are not committed, or a file is not tracked."""
    by_top: dict[Path, list[Path]] = {}
    for change in changes:
        top = find_repository(change.file.parent)
        if top is not None:
            by_top.setdefault(top, []).append(change.file)
    for top, files in sorted(by_top.items()):
        dirty = uncommitted(top, files)
        if dirty:
            names = ", ".join(shown(name) for name in dirty[:3]) + (" ..." if len(dirty) > 3 else "")
            raise UsageError(
                f"the git tree {shown(top)} has uncommitted changes ({names}); "
                "commit them, or use --allow-dirty"
            )


def uncommitted(top: Path, files: Sequence[Path]) -> list[str]:
    """Tracked files of the repository that differ from HEAD, and those of `files` that it does not track."""
    try:
        states = status(top)
    except OSError as error:
        raise UsageError(f"git cannot say whether {shown(top)} is clean; use --allow-dirty to continue") from error
    rows = [(row[:2], os.fsdecode(row[3:])) for row in states.split(b"\0") if row]
    ours = [os.path.relpath(file, os.path.realpath(top)).replace(os.sep, "/") for file in files]
    tracked = [name for state, name in rows if state != b"??"]
    new = [name for state, name in rows if state == b"??"]
    untracked = [name for name in ours if any(name == each or name.startswith(each) for each in new)]
    return sorted({*tracked, *untracked})


def write_changes(changes: Sequence[ChangedFile]) -> list[str]:
    """Replaces the files, each at once. CannotFinish when the system refuses or a file is not what was read.

    What a run that was killed left beside them is removed; a sentence for each reports it.
    """
    notes = [*remove_unfinished(change.file for change in changes)]
    for change in changes:
        try:
            if read_regular(change.file, NOTEBOOKS) != change.before:
                raise CannotFinish(f"{shown(change.path)} was changed in the meantime, so it was not written")
            replace_file(change.file, change.data)
        except OSError as error:
            raise CannotFinish(f"cannot write {shown(change.path)}: {reason(error)}; it was not changed") from error
    return notes
