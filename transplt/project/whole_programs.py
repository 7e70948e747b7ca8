"""A program is made distributed whole, or left whole: what `distributed` did to it is looked at when all is done."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from transplt.base.disk.walk import Entry
from transplt.base.finding import Finding, Status
from transplt.edits.groups import MANY_CARDS
from transplt.flow.facts import ProjectFacts
from transplt.program.imports import imports_of
from transplt.project.file_passes import migrated_again
from transplt.project.report.migration_record import FileRecord
from transplt.project.worker import FileWorker

if TYPE_CHECKING:
    from transplt.project.executors import Where

#: Codes of what `distributed` writes, and of programs that run in several processes already.
_WRITTEN = ("NPU333", "NPU349")
_ALREADY = ("NPU330", "NPU331")


def whole_or_left(
    worker: FileWorker[FileRecord], entries: Sequence[Entry], records: list[FileRecord], jobs: int | Where, out: str
) -> list[FileRecord]:
    """The records of a run in which the program of the main file was made distributed, or nothing of it.

    When something of it does not hold, all its files are migrated again without that, into the folder `out` unless it
    is empty, and a finding in the main file (NPU332) gives the reason. WriteError when a file cannot be written.
    """
    settings, project = worker.settings, worker.project
    inputs: dict[str, bytes] = dict(project.sources)
    program = imports_of(project).reached(settings.entry)
    if why := _why_not(records, program, inputs, settings.entry, project):
        wanted = [entry for entry in entries if entry.path in program]
        again = replace(worker, settings=replace(settings, refusal=why))
        renewed = {record.path: record for record in migrated_again(again, wanted, jobs, out)}
        records = [renewed.get(record.path, record) for record in records]
    return [replace(record, data=b"") if record.data else record for record in records]


def is_started_on_many_cards(findings: Collection[Finding]) -> bool:
    """True when there is something for a launch script to start: the program was made distributed, or was before."""
    return any(_is_written(finding) or finding.code in _ALREADY for finding in findings)


def _is_written(finding: Finding) -> bool:
    return finding.applied and _WRITTEN[0] <= finding.code <= _WRITTEN[1]


def _why_not(
    records: Sequence[FileRecord],
    program: Collection[str],
    inputs: dict[str, bytes],
    entry: str,
    project: ProjectFacts,
) -> str:
    """Why what was written is taken back, with the place; empty when it holds or nothing was."""
    inside = sorted((record for record in records if record.path in program), key=lambda record: record.path)
    findings = [finding for record in inside for finding in record.findings]
    for finding in findings:  # also where nothing else was written: what it claimed is left to the other fixers then
        if finding.code == "NPU992" and (why := MANY_CARDS.why_taken_back(finding)):
            return f"{why} ({finding.path})"
    if not any(_is_written(finding) for finding in findings):
        return ""
    for record in inside:
        if record.status is Status.INTERNAL:
            return f"transplt could not process {record.path}"
    from transplt.fixers.distributed.checks import problems

    outputs = {**inputs, **{record.path: record.data for record in records if record.data}}
    found = problems(outputs, entry, project)
    return f"{found[0].sentence} ({found[0].path}:{found[0].line} of what would be written)" if found else ""
