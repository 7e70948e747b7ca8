"""Carries out a check: the same passes as a migration, over files where they are."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from transplt.apply.engine import join_facts
from transplt.checking.check_worker import CheckedFile, CheckWorker
from transplt.checking.inputs import Project, find_inputs, open_project
from transplt.disk.records import Progress
from transplt.disk.walk import Entry
from transplt.finding import Finding
from transplt.project.facts import ModuleFacts
from transplt.report.checked import Change, CheckResult, Item
from transplt.run.options import Options
from transplt.run.pool import Died, Pool, default_jobs, share_out
from transplt.run.worker import Unread, unread_finding
from transplt.settings import Settings


def check_paths(
    paths: Sequence[Path],
    options: Options,
    *,
    ignores: tuple[tuple[str, tuple[str, ...]], ...] = (),
    fix: bool = False,
    diff: bool = False,
    progress: Progress = lambda done, total: None,
) -> CheckResult:
    """Looks at files and folders; nothing is written. `ignores` come on top of the settings' own.

    UsageError for a path that is not there and for settings that are wrong.
    """
    projects = find_inputs(paths, options)
    for project in projects:
        project.settings = _with(project, ignores)
    result = CheckResult()
    done = 0
    total = sum(len(project.wanted) + len(_python(project.every or [])) for project in projects)

    def step() -> None:
        nonlocal done
        done += 1
        progress(done, total)

    for project in projects:
        worker = CheckWorker(
            str(project.root), "", project.settings, project.torch, fix=fix, diff=diff
        )
        files, unread = _look(worker, project, options.jobs, step)
        result = _joined(result, project, files, unread)
    return result


def check_text(
    data: bytes,
    path: str,
    options: Options,
    *,
    ignores: tuple[tuple[str, tuple[str, ...]], ...] = (),
    fix: bool = False,
    diff: bool = False,
) -> CheckResult:
    """Looks at one file that is given as bytes; `path` says where it would lie."""
    full = Path(os.path.abspath(path))
    project = open_project(Path(os.path.realpath(full.parent)), options)
    project.settings = _with(project, ignores)
    inner = os.path.relpath(Path(os.path.realpath(full.parent)) / full.name, project.root).replace(os.sep, "/")
    worker = CheckWorker(
        str(project.root), "", project.settings, project.torch, fix=fix, diff=diff, given=data
    )
    checked = worker.finish(Entry(inner, len(data), 0o644))
    assert isinstance(checked, CheckedFile)
    return _joined(CheckResult(), project, [checked], [])


def fingerprint(finding: Finding, text: str, count: int) -> str:
    """What a finding is known by: its file, code, API, the text of its line, and its number among the same."""
    parts = (finding.path, finding.code, finding.api, " ".join(text.split()), str(count))
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _with(project: Project, ignores: tuple[tuple[str, tuple[str, ...]], ...]) -> Settings:
    return replace(project.settings, per_file_ignores=(*project.settings.per_file_ignores, *ignores))


def _python(entries: Sequence[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.is_python]


def _look(
    worker: CheckWorker, project: Project, jobs: int | None, step: Callable[[], None]
) -> tuple[list[CheckedFile], list[Finding]]:
    every = project.every if project.every is not None else project.wanted
    count = default_jobs(every) if jobs is None else jobs
    if project.every is None and len(project.wanted) == 1:
        count = 0
    files: list[CheckedFile] = []
    unread = [unread_finding(path, why) for path, why in project.unreadable]
    lost: dict[str, str] = {}
    wanted = {entry.path for entry in project.wanted}
    with Pool(worker, count) as pool:
        shares = share_out(every, count)
        if project.every is not None:
            facts: list[ModuleFacts] = []
            for entry, fact in pool.run("index", [_python(share) for share in shares]):
                step()
                if isinstance(fact, Died):
                    lost[entry.path] = fact.why
                elif fact is not None:
                    facts.append(fact)
            pool.set_project(join_facts(facts, worker.settings))
        going = [[entry for entry in share if entry.path in wanted and entry.path not in lost] for share in shares]
        for entry, record in pool.run("finish", going):
            step()
            if isinstance(record, Died):
                lost[entry.path] = record.why
            else:
                _keep(record, files, unread)
    for entry in project.wanted:
        if entry.path in lost:
            _keep(worker.copy(entry, lost[entry.path]), files, unread)
    return sorted(files, key=lambda each: each.path), unread


def _keep(record: CheckedFile | Unread, files: list[CheckedFile], unread: list[Finding]) -> None:
    if isinstance(record, Unread):
        unread.append(unread_finding(record.path, record.why))
    else:
        files.append(record)


def _joined(result: CheckResult, project: Project, files: list[CheckedFile], unread: list[Finding]) -> CheckResult:
    found: list[Item] = []
    for record in files:
        found += _items(project, record)
    found += [
        Item(replace(finding, path=project.shown(finding.path)), fingerprint(finding, "", 0)) for finding in unread
    ]
    found.sort(key=lambda item: item.finding.sort_key())
    changes = [
        Change(project.root / each.path, project.shown(each.path), each.before, each.data, each.fixed)
        for each in files
        if each.data is not None
    ]
    return CheckResult(
        items=(*result.items, *(item for item in found if item.finding.open)),
        info=(*result.info, *(item for item in found if not item.finding.open)),
        files=result.files + len(files) + len(unread),
        changes=(*result.changes, *changes),
        patch=result.patch + b"".join(each.patch for each in files),
        roots=(*result.roots, project.root),
    )


def _items(project: Project, record: CheckedFile) -> list[Item]:
    texts = dict(record.lines)
    seen: dict[tuple[str, str, str], int] = {}
    items = []
    for finding in record.findings:
        if finding.ignored:
            continue
        text = texts.get(finding.span.line, "")
        same = (finding.code, finding.api, " ".join(text.split()))
        seen[same] = seen.get(same, 0) + 1
        last = min(finding.span.end_line, finding.span.line + 2)
        around = tuple((line, texts[line]) for line in range(finding.span.line - 1, last + 2) if line in texts)
        shown_ = replace(finding, path=project.shown(finding.path))
        items.append(Item(shown_, fingerprint(finding, text, seen[same]), around))
    return items
