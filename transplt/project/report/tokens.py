"""tokens.csv: one row for each CUDA-bound token of the input, with what became of it and why.

The form is that of change_list.csv: UTF-8 without a byte order mark, commas, lines end with CRLF (RFC 4180).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

from transplt.base.finding import Cause
from transplt.base.render.cell import cell
from transplt.project.report.migration_record import RunResult
from transplt.project.report.titles import title
from transplt.rules.reasons import words_of

COLUMNS = ("File", "Line", "Column", "Token", "Verdict", "Code", "Reason")


def render_tokens(result: RunResult) -> Iterator[bytes]:
    """The bytes of the file, piece by piece: the head, then each input file that holds a token."""
    yield csv_bytes([COLUMNS])
    for record in result.files:
        if len(record.ledger):
            path = cell(record.path)
            columns = {cause: named_cause(cause) for cause in record.ledger.causes}
            yield csv_bytes(
                (path, line, column, token, cause.verdict.value, *columns[cause])
                for line, column, token, cause in record.ledger
            )


def named_cause(cause: Cause) -> tuple[str, str]:
    """What `transplt explain` takes, and the words: the code of a finding and its title, or a reason's name and words.

    A finding that a comment, the settings or its level make no work of keeps its code.
    """
    words = words_of(cause) if cause.reason else title(cause.code)
    return cause.code or cause.reason, cell(words)


def csv_bytes(rows: Iterable[Sequence[object]], end: str = "\r\n") -> bytes:
    """Rows as CSV, UTF-8 without a byte order mark; RFC 4180 ends lines with CRLF."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=end).writerows(rows)
    return text.getvalue().encode("utf-8", "backslashreplace")
