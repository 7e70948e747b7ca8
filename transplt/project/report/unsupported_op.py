"""unsupported_op.xlsx: what is left for a person: the actions, a sheet for each kind of findings, and a summary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import transplt
from transplt.base.efforts import EFFORT_TEXT
from transplt.base.finding import Finding
from transplt.base.render.cell import cell
from transplt.engine.actions.actions import actions_of
from transplt.engine.analysis.sheets import SHEETS as ANALYSIS_SHEETS
from transplt.engine.analysis.sheets import analysis_sheet
from transplt.project.report.action_rows import ACTION_COLUMNS, ACTION_WIDTHS, action_rows
from transplt.project.report.migration_record import RunResult
from transplt.project.report.titles import title

COLUMNS = ("File", "Line", "API", "Code", "Effort", "What to do")
_WIDTHS = (44, 8, 40, 10, 10, 110)
#: The first sheet.
ACTIONS = "actions"
SHEETS = ("unsupported", "check by hand", "third-party", "unreadable")
#: The last one of findings: what is no work, and has no sheet of the analysis.
REMARKS = "other remarks"
#: A sheet holds 1,048,576 rows; what does not fit is noted in the last one.
_MAX_ROWS = 1_000_000


def sheet_of(finding: Finding) -> str:
    """The sheet that an open finding belongs to."""
    if finding.code.startswith("NPU51"):
        return "third-party"
    if finding.code.startswith("NPU5"):
        return "unsupported"
    if finding.code.startswith("NPU9"):
        return "unreadable"
    return "check by hand"


def render_unsupported(result: RunResult, links: str | None = None) -> bytes:
    """The bytes of the workbook: the same for the same result.

    `links` is the way from the workbook to the files (`""` beside it, `../src/`), None for no links.
    """
    from transplt.base.render.workbooks import Sheet, workbook

    # Those of the analysis stand behind the migration's.
    titles = (*SHEETS, *(ANALYSIS_SHEETS if result.settings.analysis else ()), REMARKS)
    rows: dict[str, list[Finding]] = {name: [] for name in titles}
    for finding in result.findings:
        sheet = analysis_sheet(finding) if result.settings.analysis else ""
        if not sheet and not finding.applied:
            sheet = sheet_of(finding) if finding.open else REMARKS
        if sheet and not finding.ignored:
            rows[sheet].append(finding)
    sheets = []
    if actions := actions_of(result.findings, result.settings.style):
        sheets.append(Sheet(ACTIONS, ACTION_COLUMNS, action_rows(actions), ACTION_WIDTHS))
    for name, found in rows.items():
        if found:
            table = [*_rows(found[:_MAX_ROWS])]
            if (more := len(found) - _MAX_ROWS) > 0:
                table.append(("", "", "", "", "", f"{more} more rows do not fit into this sheet; the log has them"))
            sheets.append(Sheet(name, COLUMNS, table, _WIDTHS, links))
    counts = {name: len(found) for name, found in rows.items()}
    sheets.append(Sheet("summary", ("What", "Count"), _summary(result, counts), (60, 40)))
    return workbook(sheets)


def _rows(findings: Iterable[Finding]) -> Iterator[tuple[str | int, ...]]:
    for finding in findings:
        yield (
            cell(finding.path),
            finding.span.line,
            cell(finding.api),
            finding.code,
            EFFORT_TEXT[finding.effort] if finding.effort is not None else "",
            cell(what_to_do(finding)),
        )


def what_to_do(finding: Finding) -> str:
    """The message of a finding and its help, as sentences of one line."""
    return f"{finding.text}. {finding.help}" if finding.help else finding.text


def _summary(result: RunResult, counts: dict[str, int]) -> Iterator[tuple[str | int, ...]]:
    tokens = result.tokens
    yield ("transplt", transplt.__version__)
    yield ("torch", result.target.version)
    yield ("torch_npu", result.target.torch_npu or "not known")
    yield ("CANN", result.target.cann or "not known")
    yield ("files in the output", len(result.files))
    yield ("Python files", len(result.python_files))
    yield ("files changed", len(result.changed))
    yield ("files that could not be read", len(result.failed) + len(result.unread))
    yield ("edits", len(result.edits))
    for name, count in counts.items():
        yield (f"in the sheet {name}", count)
    by_kind = result.counts_by_code()
    yield ("remarks", by_kind["remarks"].total())
    words = ("found", "converted", "left", "not understood", "ignored", "in comments, counted apart")
    for key, text in zip(("found", "converted", "manual", "unknown", "ignored", "comments"), words, strict=True):
        yield (f"CUDA words {text}", getattr(tokens, key))
    for name, by_code in by_kind.items():
        for code, count in sorted(by_code.items()):
            yield (cell(f"{name}: {code} {title(code)}".strip()), count)
