"""Every CUDA-bound token in report.html: by what became of it, the doubtful reasons first."""

from __future__ import annotations

from typing import Any

from transplt.base.finding import Cause, TokenVerdict
from transplt.base.language import gettext, marked
from transplt.base.render.cell import visible
from transplt.project.report.migration_record import RunResult
from transplt.project.report.tokens import named_cause
from transplt.rules.reasons import Doubt, reasons

_DOUBT = {Doubt.HIGH: marked("high"), Doubt.MEDIUM: marked("medium"), Doubt.LOW: marked("low")}


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
