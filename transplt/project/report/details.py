"""What `-v` prints behind the summary of a migration: how the torch was chosen, codes, remarks, what was left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from transplt.base.errors import shown
from transplt.base.finding import Level
from transplt.base.grouped import grouped
from transplt.base.language import gettext, ngettext, translated
from transplt.base.render.cell import visible
from transplt.engine.analysis.sheets import analysis_sheet
from transplt.project.report.migration_record import RunResult
from transplt.project.report.target_lines import target_details
from transplt.project.report.titles import title


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
