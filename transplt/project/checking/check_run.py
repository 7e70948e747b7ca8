"""Carries out a check: the same passes as a migration, over files where they are."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from transplt.base.disk.git_changes import changed_lines
from transplt.base.disk.git_index import find_repository
from transplt.base.disk.walk import Entry
from transplt.base.errors import UsageError, shown
from transplt.base.finding import Finding
from transplt.base.settings import Settings
from transplt.engine.files.kind import FileKind, kind_of
from transplt.project.checking.checked_file import (
    CheckedFile,
    adds_torch_npu,
    asks_for_torch_npu,
    checked,
    import_of_torch_npu,
)
from transplt.project.checking.inputs import CheckedProject, find_inputs, open_project
from transplt.project.checking.picking import numbered, places_of
from transplt.project.checking.remembered import Remembered
from transplt.project.checking.what_is_left import work_through_rest
from transplt.project.excluded_files import kept_back
from transplt.project.options import Options
from transplt.project.pool import default_jobs, jobs_for_one
from transplt.project.progress import steps
from transplt.project.project_findings import as_they_block, of_the_whole
from transplt.project.report.check_results import ChangedFile, CheckedFinding, CheckResult, NumberedEdit
from transplt.project.report.migration_record import Progress
from transplt.project.unread_files import unread_finding
from transplt.syntax.modules import named_aside

if TYPE_CHECKING:
    from transplt.base.disk.cache_folder import Cache
    from transplt.project.worker import FileWorker, MigratedFile  # what is remembered needs no engine

#: A glob of paths and the prefixes of the codes that are switched off there.
_Ignores = tuple[tuple[str, tuple[str, ...]], ...]


def check_paths(
    paths: Sequence[Path],
    options: Options,
    *,
    ignores: _Ignores = (),
    fix: bool = False,
    diff: bool = False,
    since: str | None = None,
    picked: Sequence[NumberedEdit] | None = None,
    progress: Progress = lambda done, total: None,
    cache: Cache | None = None,
) -> CheckResult:
    """Looks at files and folders; nothing is written. `ignores` come on top of the settings' own. With `since`, a
    commit, only at the lines that changed from there to the working tree. Of the edits those that are `picked` are
    made, and what they need, None for all. What a `cache` has is not worked out again; edits are, and what changed
    since a commit.

    UsageError for a path that is not there, for settings that are wrong, and for a commit that git does not know.
    """
    projects = _projects(paths, options, since)
    if picked is not None:
        for project in projects:
            project.settings = replace(project.settings, picked=places_of(picked, project.root))
    indexed = [entry for project in projects for entry in project.every or ()]
    step = steps(progress, indexed, [entry for project in projects for entry in project.wanted])
    result = CheckResult()
    for project in projects:
        files, unread = _looked_at(project, ignores, fix, diff, step, cache if since is None else None, options.jobs)
        if since is None:
            files = _with_the_whole(files, project, ignores)
        unread += [unread_finding(path, why) for path, why in project.unreadable]
        result = _joined(result, project, sorted(files, key=lambda each: each.path), unread)
        wanted = [entry.path for entry in project.wanted]
        notes = kept_back(project.config, project.settings, wanted, project.excluded)
        result = replace(result, notes=(*result.notes, *notes))
    return result


def _projects(paths: Sequence[Path], options: Options, since: str | None) -> list[CheckedProject]:
    projects = find_inputs(paths, options)
    if since is not None:
        for project in projects:
            _only_changed(project, since)
    return projects


def files_in(paths: Sequence[Path], options: Options, since: str | None = None) -> list[str]:
    """The files that `check_paths` looks at, as they are shown."""
    return [project.shown(entry.path) for project in _projects(paths, options, since) for entry in project.wanted]


def _looked_at(
    project: CheckedProject,
    ignores: _Ignores,
    fix: bool,
    diff: bool,
    step: Callable[[], None],
    cache: Cache | None,
    given_jobs: int | None,
) -> tuple[list[CheckedFile], list[Finding]]:
    """The files of a project, from the cache where it has them, and findings for those that cannot be opened."""
    named = project.every is None and len(project.wanted) == 1
    alone = jobs_for_one(project.wanted[0].size) if named else 0

    def jobs(entries: Sequence[Entry]) -> int:
        return alone if named else default_jobs(entries) if given_jobs is None else given_jobs

    indexed = project.every or ()
    make_worker = partial(worker_for, project, ignores, fix, diff)
    if cache is None or fix or diff:
        from transplt.project.file_passes import work_through

        return work_through(make_worker(), indexed, project.wanted, jobs(indexed or project.wanted), step)
    settings = _settings(project, ignores)
    remembered = Remembered.of(cache, str(project.root), settings, project.torch, alone=project.every is None)
    return work_through_rest(remembered, make_worker, indexed, project.wanted, jobs, step)


def _with_the_whole(files: list[CheckedFile], project: CheckedProject, ignores: _Ignores) -> list[CheckedFile]:
    """The files, with the findings about their project as a whole; of a part of it only those that need no more."""
    in_order = sorted(files, key=lambda each: each.path)
    first = next((each for each in map(import_of_torch_npu, in_order) if each is not None), None)
    every = project.every or ()
    kinds = {entry.path: "python" if entry.is_python else kind_of(entry.path, b"").value for entry in every}
    lists = {path for path, kind in kinds.items() if kind == FileKind.REQUIREMENTS.value and not named_aside(path)}
    added = any(adds_torch_npu(each) for each in files if each.path in lists)
    settled = as_they_block([each.findings for each in files], added, without_card=False)
    files = [replace(each, findings=findings) for each, findings in zip(files, settled, strict=True)]
    asks, settings = any(map(asks_for_torch_npu, files)), _settings(project, ignores)
    found = of_the_whole(first, asks, kinds, project.root, project.torch, settings)
    left = {path: tuple(each for each in here if each.open) for path, here in found.items()}  # no remarks, as of files
    return [
        replace(each, findings=(*each.findings, *left[each.path])) if each.path in left else each for each in files
    ]


def _only_changed(project: CheckedProject, since: str) -> None:
    """Look at the lines of a project that changed since a commit, and at no file without such."""
    top = find_repository(project.root)
    if top is None:
        raise UsageError(f"--since {shown(since)}: {shown(project.root)} is not in a git repository")
    below = os.path.relpath(project.root, os.path.realpath(top)).replace(os.sep, "/")
    prefix = "" if below == "." else below + "/"
    changed = {
        name.removeprefix(prefix): lines
        for name, lines in changed_lines(top, since).items()
        if name.startswith(prefix)
    }
    project.wanted = [entry for entry in project.wanted if entry.path in changed]
    known = {entry.path for entry in project.wanted}
    project.settings = replace(
        project.settings, only_lines=tuple(sorted((name, lines) for name, lines in changed.items() if name in known))
    )
    project.unreadable = [each for each in project.unreadable if each[0] in changed]


def check_text(
    data: bytes,
    path: str,
    options: Options,
    *,
    ignores: _Ignores = (),
    fix: bool = False,
    diff: bool = False,
) -> CheckResult:
    """Looks at one file that is given as bytes; `path` is where it would lie."""
    full = Path(os.path.abspath(path))
    project = open_project(Path(os.path.realpath(full.parent)), options)
    inner = os.path.relpath(Path(os.path.realpath(full.parent)) / full.name, project.root).replace(os.sep, "/")
    worker = worker_for(project, ignores, fix, diff)
    worker.known[inner] = data
    entry = Entry(inner, len(data), 0o644)
    if jobs_for_one(len(data)):
        from transplt.project.file_passes import work_through

        records, _ = work_through(worker, (), [entry], jobs_for_one(len(data)), lambda: None)
    else:
        record = worker.finish(entry)
        assert isinstance(record, CheckedFile)
        records = [record]
    notes = kept_back(project.config, project.settings, [inner], ())
    return replace(_joined(CheckResult(), project, records, []), notes=notes)


def _settings(project: CheckedProject, ignores: _Ignores) -> Settings:
    ignored = (*project.settings.per_file_ignores, *ignores)
    return replace(project.settings, per_file_ignores=ignored, in_place=True, analysis=True)


def worker_for(project: CheckedProject, ignores: _Ignores, fix: bool, diff: bool) -> FileWorker[CheckedFile]:
    """What looks at the files of a project; it does not know their facts yet."""
    from transplt.project.worker import FileWorker

    settings = _settings(project, ignores)
    keep: Callable[[str, MigratedFile], CheckedFile] = partial(
        checked, fix=fix, diff=diff, only_lines=None if settings.only_lines is None else dict(settings.only_lines)
    )
    return FileWorker(str(project.root), settings, project.torch, keep, budget=project.budget)


def fingerprint(finding: Finding, text: str, count: int) -> str:
    """What a finding is known by: its file, code, API, the text of its line, and its number among the same."""
    mark = _hashed(finding.path, finding.code, finding.api, _squeezed(text), "").copy()
    mark.update(str(count).encode())
    return mark.hexdigest()[:32]


@lru_cache(maxsize=8)  # a notebook may be one line of megabytes, with findings by the thousand
def _hashed(*parts: str) -> hashlib._Hash:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape"))


@lru_cache(maxsize=8)
def _squeezed(text: str) -> str:
    return " ".join(text.split())


def _joined(
    result: CheckResult, project: CheckedProject, files: list[CheckedFile], unread: list[Finding]
) -> CheckResult:
    found: list[CheckedFinding] = []
    for record in files:
        found += _items(project, record)
    found += [
        CheckedFinding(replace(finding, path=project.shown(finding.path)), fingerprint(finding, "", 0))
        for finding in unread
    ]
    found.sort(key=lambda item: item.finding.sort_key())
    changes = [
        ChangedFile(project.root / each.path, project.shown(each.path), each.before, each.data, each.fixed, each.made)
        for each in files
        if each.data is not None
    ]
    edits, patch = numbered(files, project, len(result.edits))
    return CheckResult(
        items=(*result.items, *(item for item in found if item.finding.open)),
        info=(*result.info, *(item for item in found if not item.finding.open)),
        files=result.files + len(files) + len(unread),
        changes=(*result.changes, *changes),
        patch=result.patch + patch,
        tokens=sum((each.tokens for each in files), result.tokens),
        roots=(*result.roots, project.root),
        torch=(*result.torch, project.torch),
        notes=result.notes,
        edits=(*result.edits, *edits),
    )


def _items(project: CheckedProject, record: CheckedFile) -> list[CheckedFinding]:
    texts = dict(record.lines)
    seen: dict[tuple[str, str, str], int] = {}
    items = []
    for finding in record.findings:
        if finding.ignored:
            continue
        text = texts.get(finding.span.line, "")
        same = (finding.code, finding.api, _squeezed(text))
        seen[same] = seen.get(same, 0) + 1
        last = min(finding.span.end_line, finding.span.line + 2)
        around = tuple((line, texts[line]) for line in range(finding.span.line - 1, last + 2) if line in texts)
        shown_ = replace(finding, path=project.shown(finding.path))
        items.append(CheckedFinding(shown_, fingerprint(finding, text, seen[same]), around))
    return items
