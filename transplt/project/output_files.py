"""One migrated file goes to the output folder; what stays behind of it is its record."""

from __future__ import annotations

import contextlib
import os

from transplt.base.disk.mirror import copy_large_file, write_file
from transplt.base.finding import FileResult, Status
from transplt.base.text.frames import decoded, frames
from transplt.engine.edited_lines import edited_lines
from transplt.engine.files.kind import FileKind
from transplt.engine.patch import unified_diff
from transplt.project.report.migration_record import FileRecord
from transplt.project.worker import MigratedFile
from transplt.rules.reasons import Doubt, reasons

#: Characters of a line in the view of tokens.
_SHOWN = 160


def to_output(
    root: str, file: MigratedFile, *, out: str, patches: bool = False, again: bool = False, keep_data: bool = False
) -> FileRecord:
    """Writes a file of the tree `root` into the folder `out`; nothing where that is empty.

    With `patches` the record holds the unified diff of a changed file and the lines around what is left, with
    `keep_data` the bytes of a changed Python file. `again`: the file was written before. OSError when a large file
    cannot be read, WriteError when something cannot be written.
    """
    entry, result = file.entry, file.result
    if out and (again or result.status is Status.INTERNAL):
        # A worker that died may have begun to write it.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{out}/{entry.path}")
    digest = ""
    if out and file.large:
        digest = copy_large_file(f"{root}/{entry.path}", out, entry.path, entry.mode)
    elif out:
        digest = write_file(out, entry.path, result.data, entry.mode)
    python = file.kind is FileKind.PYTHON
    left = [finding for finding in result.findings if finding.open]
    return FileRecord(
        path=entry.path,
        kind=file.kind.value,
        sha256=digest,
        findings=result.findings,
        tokens=result.tokens,
        ledger=result.ledger,
        status=result.status,
        changed=result.changed,
        edited_lines=edited_lines(result.findings),
        prose=file.prose,
        support=result.support,
        patch=unified_diff(entry.path, file.data, result.data, result.findings) if patches else b"",
        token_lines=_doubtful_lines(file.data, result) if patches else (),
        data=result.data if keep_data and python and result.changed else b"",
        helper=file.helper,
        lines=frames(decoded(file.data), left) if left and patches and file.kind is not FileKind.BINARY else (),
    )


def _doubtful_lines(data: bytes, result: FileResult) -> tuple[tuple[int, str], ...]:
    """The lines of the tokens that stay for a reason which somebody should look at, cut to `_SHOWN` characters."""
    doubtful = {each for each in result.ledger.causes if each.reason and reasons()[each.reason].doubt < Doubt.LOW}
    lines = sorted({row.line for row in result.ledger if row.cause in doubtful}) if doubtful else []
    source = decoded(data) if lines else None
    return tuple((line, source.line_text(line).strip()[:_SHOWN]) for line in lines) if source else ()
