"""What the script of report.html draws: the findings of each file with their source lines, and every token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from transplt.base.finding import Cause, Finding, Level, TokenVerdict
from transplt.base.language import gettext, marked, translated
from transplt.base.render.cell import visible
from transplt.project.report.migration_record import RunResult
from transplt.project.report.shown_files import ShownFile
from transplt.project.report.titles import title
from transplt.project.report.tokens import named_cause
from transplt.rules.reasons import Doubt, reasons

#: The texts that the script writes; `{name}` stands for what it puts there.
SAYS = {
    "count": marked("{shown} of {all} shown"),
    "count_in": marked("{shown} of {all} shown, those of {path}"),
    "left": marked("left"),
    "left_low": marked("left, less than an hour"),
    "left_medium": marked("left, hours"),
    "left_high": marked("left, a day or more"),
    "done": marked("converted"),
    "unsafe": marked("converted, unsafe"),
    "ignored": marked("ignored"),
    "info": marked("remark"),
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
_DOUBT = {Doubt.HIGH: marked("high"), Doubt.MEDIUM: marked("medium"), Doubt.LOW: marked("low")}


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


def token_view(result: RunResult) -> dict[str, Any]:
    """What the script draws: causes in the order in which they are read, and the tokens of each file.

    A cause is (verdict, what `transplt explain` takes, words, doubt, how many tokens). A file is its path, then line,
    column, place of the word and place of the cause of each token in one flat list, then the lines that are shown.
    """
    records = [record for record in result.files if len(record.ledger)]
    counts: dict[Cause, int] = {}
    for record in records:
        for cause, count in record.ledger.counts().items():
            counts[cause] = counts.get(cause, 0) + count
    causes = sorted(counts, key=lambda cause: (_rank(cause), -counts[cause], cause))
    places = {cause: index for index, cause in enumerate(causes)}
    words: dict[str, int] = {}
    files = []
    for record in records:
        flat: list[int] = []
        for line, column, token, cause in record.ledger:
            flat += (line, column, words.setdefault(token, len(words)), places[cause])
        files.append([visible(record.path), flat, [[line, text] for line, text in record.token_lines]])
    rows = []
    for cause in causes:
        doubt = gettext(_DOUBT[reasons()[cause.reason].doubt]) if cause.verdict is TokenVerdict.IGNORED else ""
        rows.append([gettext(cause.verdict.value), *named_cause(cause), doubt, counts[cause]])
    return {"causes": rows, "words": list(words), "files": files}


def _rank(cause: Cause) -> int:
    """Doubtful reasons, what nobody understands, what is left for a person, reasons that are sure, what is done."""
    if cause.verdict is TokenVerdict.IGNORED:
        return (0, 1, 4)[reasons()[cause.reason].doubt]
    return {TokenVerdict.UNKNOWN: 2, TokenVerdict.MANUAL: 3, TokenVerdict.CONVERTED: 5}[cause.verdict]
