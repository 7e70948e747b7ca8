"""The portable style: `requirements-npu.txt` beside a requirements.txt, and likewise beside an environment of conda."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from transplt.base.disk.walk import Entry
from transplt.base.language import Sentence, marked
from transplt.engine.files.dependencies.codes import ADDED, NOT_ADDED
from transplt.engine.files.kind import FileKind
from transplt.engine.files.npu_twin import twins
from transplt.engine.files.other_file import migrate_other
from transplt.project.helper_files import new_file
from transplt.project.report.migration_record import FileRecord
from transplt.project.worker import FileWorker

_FORMS = re.compile(r"\.(?:txt|ya?ml)$")
_SAID = marked("what {name} asks for, on NPUs; the file belongs to the project from now on")


def with_twins(
    worker: FileWorker[Any], entries: Sequence[Entry], records: list[FileRecord], out: str, *, patches: bool
) -> list[FileRecord]:
    """The records of a run, and those of files for the NPU beside lists of packages that ask for torch, written into
    the folder `out` unless it is empty. OSError when a list cannot be read, WriteError when one cannot be written.
    """
    found = {entry.path: entry for entry in entries}
    made: list[FileRecord] = []
    for at, record in enumerate(records):
        path, kind = record.path, FileKind.REQUIREMENTS
        twin = _FORMS.sub(r"-npu\g<0>", path)
        asked = record.kind == kind.value and any(each.code == NOT_ADDED and each.open for each in record.findings)
        if not asked or twin == path or any(each in found for each in twins(path)):
            continue
        settings = replace(worker.settings, style="npu")
        result, _ = migrate_other(worker.read(found[path]), path, kind, settings, worker.target, worker.project)
        edits = [(each.code, each.edit.after.strip()) for each in result.findings if each.applied and each.edit]
        pins = [text for code, text in edits if code == ADDED]
        if pins:
            name = posixpath.basename(path)
            on_top = name.endswith(".txt") and len(pins) == len(edits)
            text = "\n".join((f"-r {name}", *pins, "")) if on_top else result.data.decode()
            made.append(new_file(twin, text, ADDED, Sentence(_SAID, name=name), out, patches=patches))
            aside, late = record.findings[0].aside, record.findings[0].late
            left = tuple(replace(each, aside=aside, late=late) for each in result.findings if not each.applied)
            records[at] = replace(record, findings=left, ledger=result.ledger, tokens=result.tokens)
    return [*records, *made]
