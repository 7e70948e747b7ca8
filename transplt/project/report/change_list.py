"""change_list.csv: one row for each edit, so that a reader can redo the migration by hand.

UTF-8 without a byte order mark (a mark would become part of the first column's name in every CSV reader but
Excel, which takes UTF-8 through Data > From Text/CSV), comma separated, lines end with CRLF (RFC 4180).
Before and After are texts with the escapes of Python: `\\n` is a line end, `\\\\n` a backslash and an n.
"""

from __future__ import annotations

from transplt.base.render.cell import cell, exact_cell
from transplt.project.report.migration_record import RunResult
from transplt.project.report.tokens import csv_bytes

COLUMNS = ("File", "Start Line", "End Line", "Operation Type", "Message", "Column", "Code", "Before", "After")


def render_change_list(result: RunResult) -> bytes:
    """The bytes of the file; lines and columns are those of the input, both from 1."""
    edits = sorted(result.edits, key=lambda each: (each.path, each.span.line, each.span.column, each.span.end))
    rows = [
        (
            cell(finding.path), finding.span.line, finding.span.end_line, edit.operation.value, cell(finding.text),
            finding.span.column, finding.code, exact_cell(edit.before), exact_cell(edit.after),
        )
        for finding in edits
        if (edit := finding.edit) is not None
    ]  # fmt: skip
    return csv_bytes([COLUMNS, *rows])
