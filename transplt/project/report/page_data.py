"""What the script of report.html draws: the findings of each file with their source lines, and every token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from transplt.base.finding import Finding, Level
from transplt.base.language import gettext, marked, translated
from transplt.base.render.cell import visible
from transplt.project.report.migration_record import RunResult
from transplt.project.report.shown_files import ShownFile
from transplt.project.report.titles import title
from transplt.project.report.token_view import token_view

#: The texts that the script writes; `{name}` stands for what it puts there.
SAYS = {
    "count": marked("{shown} of {all} findings"),
    "count_in": marked("{shown} of {all} findings in {path}"),
    "left": marked("left"),
    "left_low": marked("left, low"),
    "left_medium": marked("left, medium"),
    "left_high": marked("left, high"),
    "done": marked("done"),
    "unsafe": marked("done, unsafe"),
    "ignored": marked("ignored"),
    "info": marked("worth knowing"),
    "in_diff": marked("Show it in the diff"),
    "page": marked("What {code} means"),
    "more": marked("Show more"),
    "cause": marked("{count} {verdict}: {words}"),
    "doubted": marked("{count} {verdict}, doubt {doubt}: {words}"),
    "line": marked("line {line}"),
    "ticked": marked("{done} of {all} ticked off in this browser."),
    "copy": marked("Copy"),
    "copied": marked("Copied"),
}


def page_data(result: RunResult, files: Sequence[ShownFile]) -> dict[str, Any]:
    """A file is its findings and its lines (number, text); texts that come again stand in `texts` once.

    The names of the files, in the same order, and their diffs are in the page itself, to be read without a script.
    """
    texts: dict[str, int] = {}

    def text(value: str) -> int:
        return texts.setdefault(visible(value), len(texts))

    rows = [
        [[_row(finding, text) for finding in file.findings], [list(line) for line in file.lines]]
        for file in files
    ]
    codes = sorted({finding.code for file in files for finding in file.findings})
    return {
        "name": visible(result.name),
        "codes": {code: translated(title(code)) for code in codes},
        "files": rows,
        "texts": list(texts),
        "tokens": token_view(result),
        "says": {name: gettext(text) for name, text in SAYS.items()},
    }


def state_of(finding: Finding) -> str:
    """The word for what became of a finding: `left`, `done`, `unsafe`, `ignored` or `info`."""
    if finding.applied:
        return "unsafe" if finding.level is Level.UNSAFE else "done"
    return "ignored" if finding.ignored else "left" if finding.open else "info"


def _row(finding: Finding, text: Callable[[str], int]) -> list[Any]:
    """Line, column, code, state, effort, message, help, and the reason why it does not count."""
    return [
        finding.span.line,
        finding.span.column,
        finding.code,
        state_of(finding),
        finding.effort.value if finding.effort else "",
        text(finding.text),
        text(finding.help),
        text(finding.ignored),
    ]
