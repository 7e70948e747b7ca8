"""What a person sees on the terminal: a progress bar in long runs, and a summary. All of it goes to stderr."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from transplt.base.errors import shown
from transplt.base.finding import Level
from transplt.disk.manifest import LEFT_OUT
from transplt.engine.actions.actions import actions_of
from transplt.engine.analysis.sheets import analysis_sheet
from transplt.engine.own_places import own_places
from transplt.render.cell import many, visible
from transplt.report.action_lines import action_lines
from transplt.report.records import RunResult
from transplt.report.titles import title

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from transplt.report.records import Progress as Callback

#: A shorter run needs no bar.
_PATIENCE_SECONDS = 1.0
_REDRAW_SECONDS = 0.1
_MOST_DONE = 10
_MOST_NAMES = 5


@contextmanager
def progress_bar(wanted: bool) -> Iterator[Callback]:
    """A callback that draws a bar on stderr once a run takes over a second, if stderr is a terminal."""
    bar = _Bar(wanted and sys.stderr.isatty() and os.environ.get("TERM") != "dumb")
    try:
        yield bar.update
    finally:
        bar.close()


class _Bar:
    """Draws only inside `update`: no thread, because the worker processes are forked from this one."""

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted
        self._next = time.monotonic() + _PATIENCE_SECONDS
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def update(self, done: int, total: int) -> None:
        now = time.monotonic()
        if not self._wanted or now < self._next:
            return
        self._next = now + _REDRAW_SECONDS
        if self._progress is None:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

            self._progress = Progress(
                TextColumn("migrating"),
                BarColumn(),
                MofNCompleteColumn(),
                console=Console(stderr=True),
                transient=True,
                auto_refresh=False,
            )
            self._progress.start()
            self._task = self._progress.add_task("migrating", total=total)
        if self._task is not None:
            self._progress.update(self._task, completed=done, total=total, refresh=True)

    def close(self) -> None:
        if self._progress is not None:
            self._progress.stop()


def summary(result: RunResult, verbose: int = 0, width: int = 0) -> Iterator[str]:
    """The lines of the summary; the last one is what is left. `width` is that of the terminal, 0 for any."""
    actions = actions_of(result.findings)
    target, tokens = result.target, result.tokens
    npu = f"torch_npu {target.torch_npu}" if target.torch_npu else "the torch_npu of the same version"
    cann = f", CANN {target.cann}" if target.cann else ""
    yield {
        "all": f"migrated to {shown(result.output)}",
        "reports": f"reports only, in {shown(result.output)}",
        "nothing": "nothing was written",
    }[result.written]
    yield f"  for torch {target.version} ({visible(target.why)}) with {npu}{cann}"
    yield from (f"    {visible(line)}" for line in target.weighed)
    yield from (f"    changed in {change}" for change in target.changes)
    failed = len(result.failed) + len(result.unread)
    changed = sum(record.changed for record in result.python_files)
    others = len(result.changed) - changed
    yield (
        f"  {many(len(result.python_files), 'Python file')} scanned, {changed} changed, {failed} failed; "
        + (f"{many(others, 'other file')} changed; " if others else "")
        + f"{many(len(result.files), 'file')} {'in the output' if result.written == 'all' else 'looked at'}"
    )
    unsafe = sum(finding.level is Level.UNSAFE for finding in result.edits)
    yield (
        f"  {many(len(result.edits), 'edit')}{f' ({unsafe} unsafe)' if unsafe else ''}, "
        f"{many(len(result.open_findings), 'finding')} for a person"
    )
    yield from _codes(result)
    if any(cause.reason == "project-beside" for record in result.files for cause in record.ledger.causes):
        yield "  the project supports NPUs itself: files for CUDA stay, and what is for CUDA alone is NPU200"
    written = {record.path for record in result.helpers}
    if places := own_places(record.path for record in result.files if record.path not in written):
        named = [*map(shown, places[:_MOST_NAMES])]
        more = f" and {len(places) - len(named)} more" if len(places) > len(named) else ""
        yield f"  the project has parts of its own for the NPU, to read first: {', '.join(named)}{more}"
    for record in result.helpers:
        yield f"  {shown(record.path)}: {record.findings[0].message}"
    yield from _levels(result)
    for record in result.failed[:_MOST_NAMES]:
        why = record.findings[0].message if record.findings else record.status.value
        yield f"  failed: {shown(record.path)}: {visible(why)}"
    for finding in result.unread[:_MOST_NAMES]:
        yield f"  failed: {shown(finding.path)}: {visible(finding.text)}"
    if failed > _MOST_NAMES:
        yield f"  ... see the log for all {failed}"
    yield from _left_out(result, verbose)
    yield from _planned(result)
    yield from (f"  {note}" for note in result.notes)
    prose = f", of these {result.prose} in prose" if result.prose else ""
    yield (
        f"  CUDA tokens: {tokens.found} found, {tokens.converted} converted, {tokens.manual} manual, "
        f"{tokens.unknown} unknown, {tokens.ignored} ignored{prose} (comments apart: {tokens.comments})"
    )
    if result.settings.entry and result.written == "all":
        yield _launch(result)
    if "env_npu.sh" in result.reports:
        yield f"  host settings to try (all commented out): {result.reports['env_npu.sh']}"
    yield from action_lines(actions, width)
    yield _residue(result)


def _planned(result: RunResult) -> Iterator[str]:
    """What became of a plan; the log has every sentence."""
    yield from (f"  {line}" for line in result.planned[: 1 + _MOST_NAMES])
    if len(result.planned) > 1 + _MOST_NAMES:
        more = len(result.planned) - 1 - _MOST_NAMES
        where = "; see the log for all" if result.written != "nothing" else ""
        yield f"  not followed: {more} more{where}"


def _launch(result: RunResult) -> str:
    name = result.reports.get("run_distributed_npu.sh")
    if name is None:
        return "  no launch script: the program was not made distributed (NPU332 says why)"
    whole = any(finding.code == "NPU340" for finding in result.findings)
    slow = "; every rank trains on all of the data: more cards are no faster (NPU340)" if whole else ""
    return f"  to start it: bash {name} [--nproc N] [arguments of the script]{slow}"


def _residue(result: RunResult) -> str:
    left = result.residue
    reports = result.reports.get("unsupported_op.xlsx", "unsupported_op.xlsx")
    if left or result.open_findings:
        tokens = f"{many(left, 'token')} and {many(len(result.open_findings), 'finding')}"
        unsure = "" if result.complete else ", and what is in the files that failed"
        page = f"{result.reports['report.html']} and " if "report.html" in result.reports else ""
        see = f" (see {page}{reports})" if result.written != "nothing" else ""
        return f"  left: {tokens} to look at{unsure}{see}"
    if not result.complete:
        return "  left: what is in the files that failed"
    return "  0 left in the files that were parsed" if result.large else "  0 left"


def _codes(result: RunResult) -> Iterator[str]:
    infos = (finding for finding in result.findings if finding.level is Level.INFO and not finding.ignored)
    remarks = [finding for finding in infos if analysis_sheet(finding)]
    counts = result.counts_by_code()
    counts["remarks"].subtract(finding.code for finding in remarks)
    made = "done" if result.written == "all" else "can be done"
    rows = _commonest(counts["done"])
    if rows:
        yield f"  {made}:"
    for code, count in rows[:_MOST_DONE]:
        yield f"  {count:6} {code} {title(code)}".rstrip()
    if rest := rows[_MOST_DONE:]:
        log = result.reports.get("msFmkTranspltlog.txt", "the log")
        more = many(len(rest), "more code")
        yield f"  {sum(count for _, count in rest):6} with {more} (see {log})"
    for heading, name in (("remarks, no work", "remarks"), ("ignored", "ignored")):
        if rows := _commonest(counts[name]):
            listed = ", ".join(f"{count} {code}" for code, count in rows[:_MOST_NAMES])
            more = f" and {sum(count for _, count in rows[_MOST_NAMES:])} more" if rows[_MOST_NAMES:] else ""
            yield f"  {heading}: {listed}{more}"
    if remarks:
        sheets = Counter(analysis_sheet(finding) for finding in remarks)
        listed = ", ".join(f"{count} {sheet}" for sheet, count in sheets.most_common())
        book = result.reports.get("unsupported_op.xlsx")
        yield f"  remarks of the analysis, nothing to do: {listed}" + (f" (sheets of {book})" if book else "")


def _levels(result: RunResult) -> Iterator[str]:
    """The level of each program under apex, those that did not get the default first."""
    found = sorted(result.apex_levels, key=lambda finding: finding.message.startswith("level O2"))
    for finding in found[:_MOST_NAMES]:
        yield f"  {shown(finding.path)}:{finding.span.line}: {visible(finding.message)}"
    if rest := found[_MOST_NAMES:]:
        second = sum(not finding.message.startswith("level O2") for finding in rest)
        yield f"  ... and {many(len(rest), 'more program')} under apex, {second} of them with O1 (NPU773)"


def _commonest(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(((code, count) for code, count in counts.items() if count), key=lambda item: (-item[1], item[0]))


def _left_out(result: RunResult, verbose: int) -> Iterator[str]:
    by_reason: dict[str, list[str]] = {}
    for item in result.left_out:
        by_reason.setdefault(item.reason, []).append(item.path)
    for why, paths in sorted(by_reason.items()):
        names = paths if verbose else paths[:_MOST_NAMES]
        more = f" and {len(paths) - len(names)} more" if len(paths) > len(names) else ""
        yield f"  left out, {why}: {', '.join(shown(path) for path in names)}{more}"
    if result.large:
        size = sum(item.size for item in result.large) / 1e6
        files = f"{many(len(result.large), 'file')}, {size:.0f} MB"
        how = "; to bring them:" if result.written == "all" else ""
        yield f"  left out, larger than 10 MB and read by no rule: {files}{how}"
        if how:
            yield f"    {bring_command(result)}"


def bring_command(result: RunResult) -> str:
    """The one command that brings the files that were left out for their size."""
    folder = result.source if result.source.is_dir() else result.source.parent
    source, out = shlex.quote(str(folder)), shlex.quote(str(result.output))
    return f"tar -C {source} -cf - --null -T {shlex.quote(str(result.output / LEFT_OUT))} | tar -C {out} -xf -"
