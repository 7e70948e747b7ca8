"""Findings for a terminal: place, code and message, the source with carets, and what helps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import click

from transplt.base.efforts import EFFORT_TEXT
from transplt.base.finding import Operation, Replacement
from transplt.base.language import gettext, ngettext, translated
from transplt.base.render.cell import visible
from transplt.project.report.check_results import CheckedFinding, CheckResult
from transplt.project.report.formats.statistics import statistics
from transplt.project.report.target_lines import target_details, target_line
from transplt.project.report.wrapped import columns
from transplt.rules.pages import class_page

#: Longer source lines are cut around the place.
_MOST_COLUMNS = 110
#: Lines of Python that make something.
_DEFINES = re.compile(r"^(?:class|def) ", re.M)
#: Of more inserted lines the first alone is shown.
_MOST_INSERTED = 4


def render_text(result: CheckResult, color: bool, verbose: bool) -> str:
    """One block for what is said, at the first place of which it is said; an empty line after each."""
    same: dict[tuple[object, ...], list[CheckedFinding]] = {}
    for item in _sorted(result, verbose):
        finding = item.finding
        edit = _edit(finding.edit) if finding.edit is not None and item.fix else ""
        block = finding.code, item.fix, finding.text, finding.help, finding.effort, edit  # all of it but the place
        same.setdefault(block, []).append(item)
    return "".join("\n".join(_block(first, others, color)) + "\n\n" for first, *others in same.values())


def render_concise(result: CheckResult, color: bool, verbose: bool) -> str:
    """One line a finding."""
    return "".join(_head(item, color) + "\n" for item in _sorted(result, verbose))


def render_statistics(result: CheckResult, color: bool, verbose: bool) -> str:
    """One line a code: how many, the code, whether an edit can mend it, its title."""
    return "".join(
        f"{row.count:6} {row.code} [{'*' if row.fixable == row.count else ' '}] {row.title}".rstrip() + "\n"
        for row in statistics(result)
    )


def footer(
    result: CheckResult, styled: bool, fixing: bool, fix_only: bool = False, verbose: bool = False
) -> Iterator[str]:
    """What was found, and what --fix can do; `styled`: the settings or the command name a style. With `fix_only`
    nothing of what is left. With `verbose` what decided about the torch, and what PyTorch changed.
    """
    for target in dict.fromkeys(target for target in result.torch if target.gap):
        yield target_line(target)
        if verbose:
            yield from (f"  {line}" for line in target_details(target))
    yield from map(translated, result.notes)
    if fixing and result.fixed:
        files = sum(each.edits > 0 for each in result.changes)
        edits = ngettext("{count} edit", "{count} edits", result.fixed)
        yield ngettext("fixed {edits} in {count} file", "fixed {edits} in {count} files", files, edits=edits)
    if fix_only:
        return
    left, known = len(result.new), len(result.items) - len(result.new)
    baseline = gettext(", {count} more in the baseline", count=known) if known else ""
    if not left:
        done = ngettext("nothing left to do in {count} file", "nothing left to do in {count} files", result.files)
        yield done + baseline
        return
    holding = len({item.finding.path for item in result.new})
    findings = ngettext("{count} finding", "{count} findings", left)
    line = ngettext("found {findings} in {count} file", "found {findings} in {count} files", holding, findings=findings)
    if holding != result.files:
        line += ngettext(" ({count} file looked at)", " ({count} files looked at)", result.files)
    yield line + baseline
    yield from _fixable(result, "" if styled else " --style npu", fixing)
    if not styled and any(item.fix for item in result.new):
        yield gettext("    --style portable instead keeps the code running on CUDA too, and may edit other places")


def _fixable(result: CheckResult, style: str, fixing: bool) -> Iterator[str]:
    safe = sum(item.fix == "safe" for item in result.new)
    unsafe = sum(item.fix == "unsafe" for item in result.new)
    if safe and unsafe:
        yield gettext(
            "[*] --fix{style} edits {safe} of them; with --unsafe-fixes {unsafe} more ([unsafe])",
            safe=safe, unsafe=unsafe, style=style,
        )  # fmt: skip
    elif safe:
        yield gettext("[*] --fix{style} edits {safe} of them", safe=safe, style=style)
    elif unsafe:
        yield gettext("[unsafe] --fix --unsafe-fixes{style} edits {unsafe} of them", unsafe=unsafe, style=style)
    elif not fixing:
        yield gettext("none of them can be edited automatically")
    edits_made = (item.finding.edit for item in result.new if item.fix)
    if any(not each.before and _DEFINES.search(each.after) for each in edits_made if each is not None):
        yield gettext(
            "    (transplt -i may count other edits: it writes the functions that they need into npu_port.py)"
        )


def _sorted(result: CheckResult, verbose: bool) -> list[CheckedFinding]:
    items = [*result.new, *result.info] if verbose else list(result.new)
    return sorted(items, key=lambda item: item.finding.sort_key())


def _place(item: CheckedFinding, color: bool) -> str:
    path, place = visible(item.finding.path), f":{item.finding.span.line}:{item.finding.span.column}: "
    return f"{click.style(path, bold=True)}{click.style(place, fg='cyan')}" if color else f"{path}{place}"


def _head(item: CheckedFinding, color: bool) -> str:
    finding, place = item.finding, _place(item, color)
    mark = {"safe": "[*] ", "unsafe": "[unsafe] "}.get(item.fix, "")
    if not color:
        return f"{place}{finding.code} {mark}{visible(finding.text)}"
    red = click.style(finding.code, fg="red", bold=True)
    return f"{place}{red} {click.style(mark, fg='cyan')}{visible(finding.text)}"


def _block(item: CheckedFinding, others: Sequence[CheckedFinding], color: bool) -> Iterator[str]:
    """The finding at a place, and the `others` that say the same: their places with what stands there."""
    yield _head(item, color)
    finding = item.finding
    width = len(str(item.lines[-1][0])) if item.lines else 1
    if item.lines:
        yield _gutter("", width, color).rstrip()
        span = finding.span
        # What ends with its line end ends in the first column of the next line, where nothing of it stands.
        ends = span.end_line - (span.end_column == 1 and span.end_line > span.line)
        for number, text in item.lines:
            first = span.column if number == span.line else 1
            last = span.end_column if number == span.end_line else len(text) + 1
            marked = span.line <= number <= ends
            shown, start, length = _cut(text, first - 1, max(last - 1, first - 1), marked)
            yield (_gutter(str(number), width, color) + shown).rstrip()
            if marked and (shown.strip() or number == span.line):
                carets = "^" * max(length, 1)
                label = f" {finding.code}" if number == min(ends, item.lines[-1][0]) else ""
                line = " " * start + (click.style(carets, fg="red", bold=True) if color else carets) + label
                yield _gutter("", width, color) + line
        yield _gutter("", width, color).rstrip()
    pad = " " * width
    yield from (f"{pad} = {said}" for said in _below(item))
    if others:
        places = ngettext("the same in {count} more place:", "the same in {count} more places:", len(others))
        if finding.edit is not None and finding.edit.operation is Operation.INSERT:
            places += gettext(" (each line as it is now)")
        yield f"{pad} = {places}"
    for each in others:
        text = next((text for number, text in each.lines if number == each.finding.span.line), "").strip()
        yield (_place(each, color) + _cut(text, 0, 0, False)[0]).rstrip()


def _below(item: CheckedFinding) -> Iterator[str]:
    """The edit, what helps, and where more is said of a name that a table has."""
    finding = item.finding
    if finding.edit is not None and item.fix:
        yield _edit(finding.edit)
    if finding.help:
        effort = f" (effort: {EFFORT_TEXT[finding.effort]})" if finding.effort and not item.fix else ""
        yield f"help: {visible(finding.help)}{effort}"
    if finding.open and finding.code != "NPU601" and (page := class_page(finding.api)):
        yield f"more: transplt explain {visible(page.partition('#')[2])}"


def _edit(edit: Replacement) -> str:
    lines = edit.after.strip("\n").split("\n")
    if edit.operation is Operation.INSERT and len(lines) > _MOST_INSERTED:
        return f"insert: {visible(lines[0].strip())} ... ({len(lines)} lines; --diff shows them)"
    before, after = (visible(re.sub(r"\s*\n\s*", " ", text).strip()) for text in (edit.before, edit.after))
    if edit.operation is Operation.INSERT:
        return f"insert: {after}"
    return f"delete: {before}" if edit.operation is Operation.DELETE else f"edit: {before} -> {after}"


def _gutter(number: str, width: int, color: bool) -> str:
    text = f"{number:>{width}} | "
    return click.style(text, fg="blue", bold=True) if color else text


def _cut(text: str, first: int, last: int, marked: bool) -> tuple[str, int, int]:
    """A source line as shown, and where the carets start and how long they are, in terminal columns."""
    last = min(max(last, first), len(text))
    if marked and first == 0 and last == len(text):
        first = len(text) - len(text.lstrip())
    begin = max(0, first - _MOST_COLUMNS // 2) if len(text) > _MOST_COLUMNS else 0
    piece = text[begin : begin + _MOST_COLUMNS]
    lead = "..." if begin else ""
    shown = lead + _plain(piece) + ("..." if begin + _MOST_COLUMNS < len(text) else "")
    start = len(lead) + columns(_plain(text[begin:first]))
    return shown, start, columns(_plain(text[first : min(last, begin + _MOST_COLUMNS)]))


def _plain(text: str) -> str:
    return visible(text.replace("\t", "    "))
