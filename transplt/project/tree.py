"""Migrates a whole tree: walk, index, migrate, report, publish. The input is only ever read."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from transplt.base.disk.leftovers import remove_leftovers
from transplt.base.disk.manifest import LEFT_OUT, MANIFEST, read_manifest, reports_of
from transplt.base.disk.mirror import WriteError, write_file
from transplt.base.disk.publish import (
    Staging,
    check_output,
    keep_added,
    make_folders,
    publish,
    set_folder_modes,
    staging,
)
from transplt.base.disk.walk import Entry, Inventory, walk
from transplt.base.errors import CannotFinish, UsageError, reason, shown
from transplt.base.finding import Finding
from transplt.base.render.cell import first_of, many
from transplt.edits.helper_file import defined_in
from transplt.edits.imports import CODE as IMPORTED
from transplt.engine.files.dependencies.codes import NOT_ADDED
from transplt.engine.files.dependencies.versions import TORCH_NPU
from transplt.engine.files.kind import FileKind
from transplt.flow.chooser_place import own_place
from transplt.project.excluded_files import kept_back
from transplt.project.file_passes import migrated_again, work_through
from transplt.project.helper_files import changed_by_user, keep_beside, with_additions, with_helpers
from transplt.project.npu_twins import with_twins
from transplt.project.options import Plan
from transplt.project.output_files import to_output
from transplt.project.pool import default_jobs
from transplt.project.progress import steps
from transplt.project.project_findings import as_they_block, is_for_no_card, of_the_whole
from transplt.project.report import prepare_reports, write_reports
from transplt.project.report.manifest_text import manifest_text
from transplt.project.report.migration_record import FileRecord, Progress, RunResult
from transplt.project.unmatched_rules import unmatched
from transplt.project.unread_files import unread_finding
from transplt.project.worker import FileWorker, MigratedFile
from transplt.syntax.files import Files
from transplt.syntax.modules import named_aside

if TYPE_CHECKING:
    from transplt.project.executors import Where


def migrate_tree(plan: Plan, progress: Progress = lambda done, total: None) -> RunResult:
    """Carries out a plan. The output is there and complete at the end, or it is not there.

    UsageError: wrong input or output, nothing was written. CannotFinish: the system refused to write.
    """
    notes = tuple(remove_leftovers(plan.target))
    try:
        check_output(plan.source, plan.target, force=plan.options.force, discard_edits=plan.options.discard_edits)
    except UsageError as error:
        raise UsageError("; ".join((str(error), *notes))) from error
    found = _fitting(inventory(plan), plan)
    if found.empty:
        raise UsageError(f"there is nothing to migrate: {shown(plan.source)} is empty")
    files = _check_main_file(plan, found)
    yours = changed_by_user(plan.target)
    with staging(plan.target) as stage:
        try:
            result = _fill(plan, found, stage, progress, files, yours)
            publish(stage, replace=plan.options.force)
        except WriteError as error:
            raise CannotFinish(f"cannot write {shown(plan.target / error.path)}: {error.why}{_NOTHING}") from error
        except OSError as error:
            raise CannotFinish(_refused(error, stage)) from error
    return replace(result, notes=(*notes, *result.notes))


def _check_main_file(plan: Plan, found: Inventory) -> Files:
    """What was parsed for that."""
    if not plan.settings.entry:
        return Files()
    from transplt.project.main_file import check_main_file  # reads programs, which others need not

    return check_main_file(plan, found)


def diff_tree(plan: Plan, progress: Progress = lambda done, total: None) -> RunResult:
    """What the plan would do, with the patch of every file that would change; nothing is written."""
    found = inventory(plan)
    files = _check_main_file(plan, found)
    return _worked_through(plan, found, progress, "nothing", files, patches=True)


def analyse_tree(plan: Plan, progress: Progress = lambda done, total: None) -> RunResult:
    """What the plan would find, without working out the edits; nothing is written."""
    return _worked_through(plan, inventory(plan), progress, "nothing", Files(), survey=True)


#: Bytes of a path on Linux, its final NUL left out; and what the name of a hidden sibling has more than the output's.
_LONGEST_PATH = 4095
_STAGING_BYTES = 20
#: How many files a sentence names.
_SHOWN = 5
_NOTHING = "; nothing was left behind"


def _refused(error: OSError, stage: Staging) -> str:
    """One sentence for a system error, with the path as it would have been in the output."""
    name = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else ""
    if name.startswith(str(stage.folder)):
        name = str(stage.target) + name[len(str(stage.folder)) :]
    return f"cannot write {shown(name or stage.target)}: {reason(error)}{_NOTHING}"


def inventory(plan: Plan) -> Inventory:
    if plan.single:
        try:
            info = os.stat(plan.source)
        except OSError as error:
            raise UsageError(f"cannot read {shown(plan.source)}: {reason(error)}") from error
        return Inventory(files=[Entry(plan.source.name, info.st_size, stat.S_IMODE(info.st_mode))])
    # What an earlier migration reported is no part of the project.
    reports = reports_of(plan.source, read_manifest(plan.source))
    above = (plan.settings.base, plan.config.exclude)
    return walk(plan.source, plan.options.exclude, copy_all=plan.copy_all, skip=reports, above=above)


def _fitting(found: Inventory, plan: Plan) -> Inventory:
    """What was found, without the paths that are too long where the output is made; they count as unreadable."""
    if plan.options.report_only:
        return found
    room = _LONGEST_PATH - len(os.fsencode(plan.target)) - _STAGING_BYTES

    def fits(path: str) -> bool:
        return len(os.fsencode(path)) < room

    long = [entry.path for entry in found.files if not fits(entry.path)]
    long += [path for path, _ in found.folders if not fits(path)]
    long += [path for path in found.links if not fits(path)]
    if not long:
        return found
    return replace(
        found,
        files=[entry for entry in found.files if fits(entry.path)],
        folders=[(path, mode) for path, mode in found.folders if fits(path)],
        links={path: target for path, target in found.links.items() if fits(path)},
        unreadable=sorted([*found.unreadable, *((path, "its path is too long for the output") for path in long)]),
    )


def _fill(
    plan: Plan, found: Inventory, stage: Staging, progress: Progress, files: Files, yours: dict[str, bytes]
) -> RunResult:
    page, report_only = plan.options.page, plan.options.report_only
    if not report_only:
        make_folders(stage, (path for path, _ in found.folders))
        for path, target in found.links.items():
            os.symlink(target, stage.folder / path)
    out, written = ("", "reports") if report_only else (str(stage.folder), "all")
    result = _worked_through(plan, found, progress, written, files, out=out, patches=page)
    taken = set[str]()
    if not report_only:
        theirs, notes = keep_beside(yours, stage.folder, result.files)
        result = replace(result, kept=tuple(theirs), notes=(*result.notes, *notes))
        taken = _paths(found) | {record.path for record in result.helpers} | {*theirs}
    if not plan.options.discard_edits:
        added = keep_added(plan.source, plan.target, stage.folder, taken)
        if added:
            said = f"kept {many(len(added), 'file')} of the old output that transplt did not write: "
            result = replace(result, notes=(*result.notes, said + first_of([*map(shown, added)], _SHOWN)))
        taken |= {*added}
    result, reports = write_reports(result, stage.folder, taken, page)
    if plan.settings.entry and not report_only:
        from transplt.project.launch import LAUNCH, write_launch
        from transplt.project.whole_programs import is_started_on_many_cards

        if is_started_on_many_cards(result.findings):
            launch = write_launch(result, stage.folder, taken)
            reports |= launch
            result = replace(result, reports={**result.reports, LAUNCH: next(iter(launch))})
    (stage.folder / MANIFEST).parent.mkdir(mode=0o755, exist_ok=True)
    if report_only:
        kept = replace(result, files=(), links=(), large=())
        write_file(str(stage.folder), MANIFEST, manifest_text(kept, reports).encode("ascii"), 0o644)
        return result
    if result.large:
        names = b"".join(b"./" + os.fsencode(item.path) + b"\0" for item in result.large)
        write_file(str(stage.folder), LEFT_OUT, names, 0o644)
    write_file(str(stage.folder), MANIFEST, manifest_text(result, reports).encode("ascii"), 0o644)
    top = 0o755 if plan.single else stat.S_IMODE(os.stat(plan.source).st_mode)
    set_folder_modes(stage, found.folders, top)
    return result


def _paths(found: Inventory) -> set[str]:
    """What stands at the top of the output or below."""
    return {entry.path for entry in found.files} | set(found.links) | {path for path, _ in found.folders}


def _workers(plan: Plan, found: Inventory) -> int | Where:
    """The number of processes, or the executor that was asked for. UsageError for one that there is not."""
    options = plan.options
    if options.executor is not None:
        from transplt.project.executors import parse_executor

        if options.jobs is not None:
            raise UsageError("--jobs and --executor cannot be combined")
        return parse_executor(options.executor)
    return default_jobs(found.files) if options.jobs is None else options.jobs


def _worked_through(
    plan: Plan,
    found: Inventory,
    progress: Progress,
    written: str,
    files: Files,
    *,
    out: str = "",
    patches: bool = False,
    survey: bool = False,
) -> RunResult:
    """The files read and migrated, and written into the folder `out` unless it is empty; `files` are parsed before."""
    many = bool(plan.settings.entry) and not survey
    jobs = _workers(plan, found)
    # On an executor a share of files is tried again where a worker died.
    again = not isinstance(jobs, int)
    keep: Callable[[str, MigratedFile], FileRecord] = partial(
        to_output, out=out, patches=patches, keep_data=many, again=again
    )
    worker = FileWorker(
        str(plan.folder), plan.settings, plan.torch, keep, survey=survey, follow=plan.single, files=files,
        budget=plan.budget,
    )
    step = steps(progress, found.files, found.files)
    meanwhile = partial(prepare_reports, patches) if written != "nothing" else lambda: None
    records, unread = work_through(worker, found.files, found.files, jobs, step, meanwhile)
    if many:
        from transplt.project.whole_programs import whole_or_left

        records = whole_or_left(worker, found.files, records, jobs, out)
    if plan.settings.style == "portable" and not plan.single:
        records = with_completed_choosers(worker, found.files, records, jobs, out)
        records = with_additions(worker, found.files, records, out, patches=patches)
        records = with_twins(worker, found.files, records, out, patches=patches)
    records = with_helpers(worker, found.files, records, _paths(found), out, patches=patches)
    records, bare = _with_the_whole(records, plan, survey=survey) if not plan.single else (records, False)
    unread += [unread_finding(path, why) for path, why in found.unreadable]
    if plan.single and unread:
        raise UsageError(f"cannot read {shown(plan.source)}: {unread[0].detail('why')}")
    paths = [entry.path for entry in found.files]
    return RunResult(
        name=plan.source.stem if plan.single else plan.source.name,
        source=plan.source,
        output=plan.target,
        settings=plan.settings,
        target=plan.torch,
        files=tuple(sorted(records, key=lambda record: record.path)),
        links=tuple(sorted(found.links)),
        left_out=tuple(found.left_out),
        large=tuple(found.large),
        unread=tuple(sorted(unread, key=Finding.sort_key)),
        written=written,
        portable=worker.project is not None and worker.project.portable,
        bare=bare,
        facts=worker.project,
        planned=_planned(plan, records),
        notes=(
            *kept_back(plan.config, plan.settings, paths, [item.path for item in found.left_out]),
            *unmatched(plan.settings, plan.folder, (path for path in paths if path.endswith(".py"))),
        ),
    )


def _planned(plan: Plan, records: list[FileRecord]) -> tuple[str, ...]:
    """What became of the decisions of a plan."""
    if plan.settings.decided is None:
        return ()
    from transplt.project.plan_file.outcome import followed

    return followed(plan.settings.decided, {record.path: record.findings for record in records})


def _with_the_whole(records: list[FileRecord], plan: Plan, *, survey: bool) -> tuple[list[FileRecord], bool]:
    """The records, with the findings about the project as a whole in its files; and whether none asks for a card."""
    made = [
        finding
        for record in sorted(records, key=lambda record: record.path)
        if record.kind == FileKind.PYTHON.value
        for finding in record.findings
        if finding.applied
    ]
    # Where edits are not worked out, the first of them stands for the import that goes with it.
    first = next((each for each in made if survey or each.code == IMPORTED), None)
    made_of = ((record, (each.edit for each in record.findings if each.applied)) for record in records)
    adding = [record for record, edits in made_of if any(each and TORCH_NPU in each.after for each in edits)]
    added = any(each.kind == FileKind.REQUIREMENTS.value and not named_aside(each.path) for each in adding)
    kinds, told = {record.path: record.kind for record in records}, [record.findings for record in records]
    bare = plan.settings.analysis and is_for_no_card((one for each in told for one in each), kinds, plan.source)
    settled = as_they_block(told, added, bare)
    records = [replace(record, findings=findings) for record, findings in zip(records, settled, strict=True)]
    asks = bool(adding) or any(each.code == NOT_ADDED for findings in settled for each in findings)
    found = of_the_whole(first, asks, kinds, plan.source, plan.torch, plan.settings)
    return [
        replace(record, findings=tuple(sorted([*record.findings, *found[record.path]], key=Finding.sort_key)))
        if record.path in found
        else record
        for record in records
    ], bare


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
