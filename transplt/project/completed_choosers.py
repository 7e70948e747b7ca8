"""Modules of the project that choose the device get what other files take from them, which is known in the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from transplt.base.disk.walk import Entry
from transplt.edits.helper_file import defined_in
from transplt.flow.chooser_place import own_place
from transplt.project.file_passes import migrated_again
from transplt.project.report.migration_record import FileRecord
from transplt.project.worker import FileWorker

if TYPE_CHECKING:
    from transplt.project.executors import Where


def with_completed_choosers(
    worker: FileWorker[FileRecord], entries: Sequence[Entry], records: list[FileRecord], jobs: int | Where, out: str
) -> list[FileRecord]:
    """The records of a run in which these modules have what other files take from them; where one of them cannot be
    completed, all files are migrated again without. WriteError when a file cannot be written.
    """
    wanted = _wanted(worker, records)
    if not wanted:
        return records
    completes = tuple((path, tuple(sorted(names))) for path, names in sorted(wanted.items()))
    again = replace(worker, settings=replace(worker.settings, completes=completes))
    done = migrated_again(again, [each for each in entries if each.path in wanted], jobs, out, keep_data=True)
    if not all(wanted[record.path] <= {*defined_in(record.data)} for record in done):
        again = replace(worker, settings=replace(worker.settings, completes=None))
        return migrated_again(again, entries, jobs, out)
    named = dict(completes)
    renewed = {record.path: replace(record, data=b"", completed=named[record.path]) for record in done}
    records = [renewed.get(record.path, record) for record in records]
    taken = [record.helper is not None and record.helper.paths[0] in wanted for record in records]
    return [replace(each, helper=None) if own else each for each, own in zip(records, taken, strict=True)]


def _wanted(worker: FileWorker[FileRecord], records: Sequence[FileRecord]) -> dict[str, set[str]]:
    """The names that files take from such modules, by the path of each."""
    wanted: dict[str, set[str]] = {}
    for record in records:
        if record.helper is not None:
            path = record.helper.paths[0]
            place = own_place(worker.project, path, worker.settings) if path in worker.project.placing else None
            if place is not None and path in place.paths:
                wanted.setdefault(path, {"DEVICE_TYPE"}).update(record.helper.names)  # by which it is known again
    return wanted
