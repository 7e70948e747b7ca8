"""Migrates a whole tree: walk, index, migrate, report, publish. The input is only ever read."""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import dataclass, field, replace

from transplt.apply.engine import join_facts
from transplt.disk.manifest import LEFT_OUT, MANIFEST, manifest_text, read_manifest
from transplt.disk.mirror import WriteError, write_file
from transplt.disk.publish import Staging, check_output, make_folders, publish, set_folder_modes, staging
from transplt.disk.records import FileRecord, Progress, RunResult
from transplt.disk.walk import Entry, Inventory, walk
from transplt.errors import CannotFinish, UsageError, reason, shown
from transplt.finding import Finding
from transplt.project.facts import ModuleFacts
from transplt.report import write_reports
from transplt.run.options import Plan
from transplt.run.pool import Died, Pool, default_jobs, share_out
from transplt.run.worker import FileWorker, Unread, unread_finding


def migrate_tree(plan: Plan, progress: Progress = lambda done, total: None) -> RunResult:
    """Carries out a plan. The output is there and complete at the end, or it is not there.

    UsageError: wrong input or output, nothing was written. CannotFinish: the system refused to write.
    """
    check_output(plan.source, plan.target, force=plan.force, discard_edits=plan.discard_edits)
    found = _inventory(plan)
    if found.empty:
        raise UsageError(f"there is nothing to migrate: {shown(plan.source)} is empty")
    with staging(plan.target) as stage:
        try:
            result = _fill(plan, found, stage, progress)
            publish(stage, replace=plan.force)
        except WriteError as error:
            raise CannotFinish(f"cannot write {shown(plan.target / error.path)}: {error.why}{_NOTHING}") from error
        except OSError as error:
            raise CannotFinish(_refused(error, stage)) from error
    return result


def diff_tree(plan: Plan, progress: Progress = lambda done, total: None) -> RunResult:
    """What the plan would do, with the patch of every file that would change; nothing is written."""
    found = _inventory(plan)
    worker = FileWorker(str(plan.folder), "", plan.settings, plan.torch, patches=True)
    return _result(plan, found, _work(worker, found, plan.jobs, progress), "nothing")


def analyse_tree(plan: Plan, progress: Progress = lambda done, total: None) -> RunResult:
    """What the plan would find, without working out the edits; nothing is written."""
    found = _inventory(plan)
    worker = FileWorker(str(plan.folder), "", plan.settings, plan.torch, survey=True)
    return _result(plan, found, _work(worker, found, plan.jobs, progress), "nothing")


_NOTHING = "; nothing was left behind"


def _refused(error: OSError, stage: Staging) -> str:
    """One sentence for a system error, with the path as it would have been in the output."""
    name = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else ""
    if name.startswith(str(stage.folder)):
        name = str(stage.target) + name[len(str(stage.folder)) :]
    return f"cannot write {shown(name or stage.target)}: {reason(error)}{_NOTHING}"


def _inventory(plan: Plan) -> Inventory:
    if plan.single:
        try:
            info = os.stat(plan.source)
        except OSError as error:
            raise UsageError(f"cannot read {shown(plan.source)}: {reason(error)}") from error
        return Inventory(files=[Entry(plan.source.name, info.st_size, stat.S_IMODE(info.st_mode))])
    # What an earlier migration reported is no part of the project.
    before = read_manifest(plan.source)
    reports = frozenset(before["reports"]) if before is not None else frozenset()
    above = (plan.settings.base, plan.project_exclude)
    return walk(plan.source, plan.exclude, copy_all=plan.copy_all, skip=reports, above=above)


def _fill(plan: Plan, found: Inventory, stage: Staging, progress: Progress) -> RunResult:
    if not plan.report_only:
        make_folders(stage, (path for path, _ in found.folders))
        for path, target in found.links.items():
            os.symlink(target, stage.folder / path)
    out = "" if plan.report_only else str(stage.folder)
    worker = FileWorker(str(plan.folder), out, plan.settings, plan.torch, patches=plan.page)
    outcome = _work(worker, found, plan.jobs, progress)
    result = _result(plan, found, outcome, "reports" if plan.report_only else "all")
    taken = set[str]()
    if not plan.report_only:
        taken = {entry.path for entry in found.files} | set(found.links) | {path for path, _ in found.folders}
    result, reports = write_reports(result, stage.folder, taken, plan.page)
    if plan.settings.entry and not plan.report_only:
        from transplt.run.launch import write_launch

        reports |= write_launch(result, stage.folder, taken)
    (stage.folder / MANIFEST).parent.mkdir(mode=0o755)
    if plan.report_only:
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


def _result(plan: Plan, found: Inventory, outcome: _Outcome, written: str) -> RunResult:
    unread = [unread_finding(path, why) for path, why in found.unreadable] + outcome.unread
    if plan.single and unread:
        raise UsageError(f"cannot read {shown(plan.source)}: {unread[0].help}")
    return RunResult(
        name=plan.source.stem if plan.single else plan.source.name,
        source=plan.source,
        output=plan.target,
        settings=plan.settings,
        target=plan.torch,
        files=tuple(sorted(outcome.records, key=lambda record: record.path)),
        links=tuple(sorted(found.links)),
        left_out=tuple(found.left_out),
        large=tuple(found.large),
        unread=tuple(sorted(unread, key=Finding.sort_key)),
        written=written,
    )


@dataclass(slots=True)
class _Outcome:
    records: list[FileRecord] = field(default_factory=list)
    unread: list[Finding] = field(default_factory=list)


def _work(worker: FileWorker, found: Inventory, jobs: int | None, progress: Progress) -> _Outcome:
    """Both passes over the files: first what they say to each other, then the migration."""
    count = default_jobs(found.files) if jobs is None else jobs
    shares = share_out(found.files, count)
    python = [[entry for entry in share if entry.is_python] for share in shares]
    done, total = 0, len(found.files) + sum(map(len, python))
    outcome = _Outcome()
    if not found.files:
        return outcome
    facts: list[ModuleFacts] = []
    lost: dict[str, str] = {}
    with Pool(worker, count) as pool:
        for entry, fact in pool.run("index", python):
            done += 1
            progress(done, total)
            if isinstance(fact, Died):
                lost[entry.path] = fact.why
            elif fact is not None:
                facts.append(fact)
        pool.set_project(join_facts(facts, worker.settings))
        going = [[entry for entry in share if entry.path not in lost] for share in shares]
        for entry, record in pool.run("finish", going):
            done += 1
            progress(done, total)
            if isinstance(record, Died):
                lost[entry.path] = record.why
            else:
                _keep(outcome, record)
    for entry in found.files:
        if entry.path in lost:
            if worker.out:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(f"{worker.out}/{entry.path}")
            _keep(outcome, worker.copy(entry, lost[entry.path]))
    return outcome


def _keep(outcome: _Outcome, record: FileRecord | Unread) -> None:
    if isinstance(record, Unread):
        outcome.unread.append(unread_finding(record.path, record.why))
    else:
        outcome.records.append(record)
