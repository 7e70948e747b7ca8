"""The summary of a migration on a terminal: where the output is, what a person has to do, what was converted."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator

from transplt.base.disk.manifest import LEFT_OUT
from transplt.base.errors import shown
from transplt.base.finding import Level
from transplt.base.grouped import grouped
from transplt.base.language import gettext, ngettext, translated
from transplt.base.render.cell import visible
from transplt.engine.actions.actions import actions_of
from transplt.engine.analysis.sheets import analysis_sheet
from transplt.engine.own_npu_folders import own_places
from transplt.project.environment.wanted import script_to_train
from transplt.project.report.action_lines import action_lines, few, first_actions
from transplt.project.report.migration_record import RunResult
from transplt.project.report.target_lines import target_details, target_line
from transplt.project.report.titles import title
from transplt.project.report.wrapped import wrapped

_MOST_ACTIONS, _MOST_NAMES = 5, 3
#: Where a line goes on, and what a line begins with that is copied as it is.
_MARGIN, _COMMAND = 4, ("    tar ", "    transplt ")


def summary(result: RunResult, verbose: int = 0, width: int = 0) -> Iterator[str]:
    """The lines of the summary, and with `verbose` all that the reports hold in short. `width` is that of the terminal
    in columns, 0 for any.
    """
    where = {
        "all": gettext("migrated to {path}", path=shown(result.output)),
        "reports": gettext("reports only, in {path}", path=shown(result.output)),
        "nothing": gettext("nothing was written"),
    }
    for line in (where[result.written], f"  {target_line(result.target)}"):
        yield from wrapped(line, width, _MARGIN)
    yield from _to_do(result, verbose, width)
    for text in (*_converted(result), *_happened(result), *_rest(result, verbose)):
        line = f"  {text}"
        yield from [line] if line.startswith(_COMMAND) else wrapped(line, width, _MARGIN)
    if verbose:
        yield from details(result, width)


def _to_do(result: RunResult, verbose: int, width: int) -> Iterator[str]:
    actions = actions_of(result.findings, result.settings.style)
    if verbose and actions:
        yield from action_lines(actions, width)
    elif actions:
        yield from first_actions(actions, _MOST_ACTIONS, width)
    elif result.residue:
        yield "  " + ngettext(
            "to do: check {count} CUDA word", "to do: check {count} CUDA words", result.residue
        )
    elif result.complete:
        large = gettext("nothing left to do in the files that were read")
        yield "  " + (large if result.large else gettext("nothing left to do"))
    if not result.complete:
        unread = {shown(each.path) for each in result.failed}.union(shown(each.path) for each in result.unread)
        yield "  " + gettext("not counted: the edits and the work in {paths}, not readable", paths=few(sorted(unread)))


def _converted(result: RunResult) -> Iterator[str]:
    """How much was edited, and what became of the CUDA words."""
    added = {record.path for record in result.helpers}  # told by a line of their own
    edits = result.edits
    files, looked = ([each for each in records if each.path not in added] for records in (result.changed, result.files))
    unsafe = sum(finding.level is Level.UNSAFE for finding in edits)
    line = ngettext("{count} edit", "{count} edits", len(edits))
    line += gettext(" ({count} unsafe)", count=unsafe) if unsafe else ""
    changed = ngettext("{changed} of {count} file", "{changed} of {count} files", len(looked), changed=len(files))
    if added:
        changed = gettext("{files} and {path}", files=changed, path=few(sorted(map(shown, added))))
    if not edits:
        yield ngettext("no edits; {count} file looked at", "no edits; {count} files looked at", len(result.files))
        if result.without_card:
            yield translated(result.said_without_card)
    elif result.written == "all":
        yield gettext("converted: {edits} in {files}", edits=line, files=changed)
    else:
        yield gettext("can be converted: {edits} in {files}", edits=line, files=changed)
    if result.tokens.found:
        yield _accounted(result)


def _accounted(result: RunResult) -> str:
    """What became of the CUDA words."""
    tokens = result.tokens
    parts = [
        gettext("{count} converted", count=tokens.converted),
        *([gettext("{count} left", count=tokens.manual)] if tokens.manual else []),
        *([gettext("{count} not understood", count=tokens.unknown)] if tokens.unknown else []),
        *([gettext("{count} ignored", count=tokens.ignored)] if tokens.ignored else []),
    ]
    values = {"found": tokens.found, "parts": gettext(", ").join(parts), "file": result.reports.get("tokens.csv", "")}
    if tokens.ignored and values["file"]:
        return gettext("CUDA words: {found} found; {parts} ({file} says why)", **values)
    return gettext("CUDA words: {found} found; {parts}", **values)


def _happened(result: RunResult) -> Iterator[str]:
    """What not every migration has to say."""
    if any(cause.reason == "project-beside" for record in result.files for cause in record.ledger.causes):
        yield gettext("the project supports NPUs itself: its files for CUDA stay (NPU200)")
    written = {record.path for record in result.helpers}
    if places := own_places(record.path for record in result.files if record.path not in written):
        yield gettext("the project has its own NPU code; read it first: {names}", names=few([*map(shown, places)]))
    for record in result.files:
        if names := ", ".join(record.completed):
            path = shown(record.path)
            yield gettext("{path} already chooses the device; added to it: {names}", path=path, names=names)
    for record in result.helpers:
        yield f"{shown(record.path)}: {visible(translated(record.findings[0].message))}"
    if levels := result.apex_levels:
        second = sum(finding.detail("level") == "O2" for finding in levels)
        yield gettext(
            "mixed precision by apex: O2 in {second}, O1 in {first} (NPU773 says why)",
            second=second, first=len(levels) - second,
        )  # fmt: skip
    yield from _failed(result)
    yield from _left_out(result)
    yield from result.planned[: 1 + _MOST_NAMES]
    if more := len(result.planned) - 1 - _MOST_NAMES if len(result.planned) > 1 + _MOST_NAMES else 0:
        yield gettext("not followed: {count} more of the plan; add -v to list them", count=more)
    yield from map(translated, result.notes)
    if result.settings.entry and result.written == "all":
        yield _launch(result)
    if "env_npu.sh" in result.reports:
        yield gettext("host settings to try (all commented out): {file}", file=result.reports["env_npu.sh"])


def _failed(result: RunResult) -> Iterator[str]:
    reasons = [
        (shown(record.path) + f":{found[0].span.line}" * (found[0].span.line > 1), found[0].message)
        if (found := record.findings) else (shown(record.path), record.status.value)
        for record in result.failed
    ]
    reasons += [(shown(finding.path), finding.text) for finding in result.unread]
    by_reason = grouped((visible(translated(why)), path) for path, why in reasons)
    for why, paths in tuple(by_reason.items())[:_MOST_NAMES]:
        yield gettext("failed: {path}: {why}", path=few(paths), why=why)
    if len(by_reason) > _MOST_NAMES:
        yield gettext("failed: {count} files in all; the log lists them", count=len(reasons))


def _left_out(result: RunResult) -> Iterator[str]:
    if result.left_out:
        names = few([shown(item.path) for item in result.left_out])
        yield gettext("left out, as the log says why: {names}", names=names)
    if result.large:
        size = f"{sum(item.size for item in result.large) / 1e6:.0f}"
        if result.written != "all":
            yield ngettext(
                "left out: {count} file over 10 MB, {size} MB",
                "left out: {count} files over 10 MB, {size} MB", len(result.large), size=size,
            )  # fmt: skip
            return
        yield ngettext(
            "left out: {count} file over 10 MB, {size} MB; this copies it:",
            "left out: {count} files over 10 MB, {size} MB; this copies them:", len(result.large), size=size,
        )  # fmt: skip
        yield f"  {bring_command(result)}"


def _launch(result: RunResult) -> str:
    name = result.reports.get("run_distributed_npu.sh")
    if name is None:
        why = next((each.message.partition(": ")[2] for each in result.findings if each.code == "NPU332"), "")
        return gettext("no launch script: the program was not made distributed (NPU332): {why}", why=why)
    if result.whole:
        return gettext(
            "to start it: bash {script}; every rank trains on all of the data, so more cards are no faster (NPU340)",
            script=name,
        )
    return gettext("to start it: bash {script} [--nproc N] [arguments of the script]", script=name)


def _rest(result: RunResult, verbose: int) -> Iterator[str]:
    """Where everything else is."""
    known = ("report.html", "unsupported_op.xlsx", "msFmkTranspltlog.txt")
    files = [result.reports[name] for name in known if name in result.reports]
    if not files or result.written == "nothing":
        return
    if verbose:
        yield gettext("more in {files}; line numbers are those of the original", files=gettext(", ").join(files))
    else:
        yield gettext(
            "more in {files}, or with -v; line numbers are those of the original", files=gettext(", ").join(files)
        )
    if result.written == "all" and result.source.is_dir() and result.edits and not result.without_card:
        before, after = (shlex.quote(shown(path)) for path in (result.source, result.output))
        if result.settings.entry:
            after += f" --main {shlex.quote(shown(result.settings.entry))}"
            if "run_distributed_npu.sh" in result.reports:  # two ranks, and one process with what both of them have
                after += " --nproc 1,2"
        elif not (result.source / "main.py").is_file():
            after += f" --main {shlex.quote(script_to_train(result.source) or 'TRAINING_SCRIPT')}"
        yield gettext("to install what it needs, and check that it computes the same:")
        yield f"  transplt run --setup {before}"
        yield f"  transplt prove {before} {after}"


def bring_command(result: RunResult) -> str:
    """The one command that brings the files that were left out for their size."""
    folder = result.source if result.source.is_dir() else result.source.parent
    source, out = shlex.quote(str(folder)), shlex.quote(str(result.output))
    return f"tar -C {source} -cf - --null -T {shlex.quote(str(result.output / LEFT_OUT))} | tar -C {out} -xf -"


def details(result: RunResult, width: int = 0) -> Iterator[str]:
    """Everything that a terminal has room for; the reports hold more."""
    target = result.target
    if target.cann:
        yield f"  CANN {target.cann}"
    yield from (f"  {line}" for line in target_details(target))
    python = result.python_files
    yield "  " + ngettext(
        "{count} Python file read, {changed} changed, {failed} failed",
        "{count} Python files read, {changed} changed, {failed} failed",
        len(python), changed=sum(record.changed for record in python), failed=len(result.failed) + len(result.unread),
    )  # fmt: skip
    yield from _codes(result)
    for finding in sorted(result.apex_levels, key=lambda finding: finding.detail("level")):
        yield f"  {shown(finding.path)}:{finding.span.line}: {visible(finding.message)}"
    by_reason = grouped((item.reason, shown(item.path)) for item in result.left_out)
    for why, paths in sorted(by_reason.items()):
        yield "  " + gettext("left out, {why}: {names}", why=translated(why), names=", ".join(paths))
    yield from (f"  {line}" for line in result.planned)
    if result.prose or result.tokens.comments:
        yield "  " + gettext(
            "CUDA words in text that nothing runs: {prose}; in comments, which are not counted: {comments}",
            prose=result.prose, comments=result.tokens.comments,
        )  # fmt: skip


def _codes(result: RunResult) -> Iterator[str]:
    """Findings by their codes: edits, remarks, what is ignored."""
    infos = (finding for finding in result.findings if finding.level is Level.INFO and not finding.ignored)
    remarks = [finding for finding in infos if analysis_sheet(finding)]
    counts = result.counts_by_code()
    counts["remarks"].subtract(finding.code for finding in remarks)
    headings = {
        "done": gettext("edits by code:"),
        "remarks": gettext("remarks, which do not stop the program:"),
        "ignored": gettext("ignored:"),
    }
    for name, heading in headings.items():
        if rows := sorted((-count, code) for code, count in counts[name].items() if count):
            yield f"  {heading}"
        for count, code in rows:
            yield f"  {-count:6} {code} {translated(title(code))}".rstrip()
    if remarks:
        sheets = Counter(analysis_sheet(finding) for finding in remarks)
        listed = ", ".join(f"{count} {sheet}" for sheet, count in sheets.most_common())
        yield "  " + gettext("remarks of the analysis, by the sheets of unsupported_op.xlsx: {counts}", counts=listed)
