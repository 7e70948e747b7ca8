"""`check --fix --add-ignores`: an ignore comment behind each line whose finding is left."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from transplt.base.errors import UsageError, shown
from transplt.base.finding import Finding
from transplt.base.grouped import grouped
from transplt.base.render.cell import first_of, many, visible
from transplt.base.text.ignore_comments import ignore_comments
from transplt.base.text.regular_file import NOTEBOOKS, read_regular
from transplt.engine.files.add_ignores import with_ignores
from transplt.project.report.check_results import ChangedFile, CheckResult

#: Codes of what is said about ignore comments, and of files that could not be read: nothing is ignored there.
_NEVER = ("NPU61", "NPU9")
_MOST_NAMED = 10


def reason_of(text: str) -> str:
    """The reason as it stands in the comments. UsageError for one that is empty, of several lines, or a comment."""
    reason = text.strip()
    if not reason or not reason.isprintable() or any(ignore_comments(f"# {reason}".encode())) or "#" in reason:
        raise UsageError("--add-ignores needs the reason for the comments: some words in one line, without #")
    return reason


def with_comments(result: CheckResult, why: str) -> CheckResult:
    """The result of a check with `fix`, whose changes hold a comment for what is left too; its notes say how many, and
    which lines can take none.
    """
    by_path = grouped((item.finding.path, item.finding) for item in result.new)
    changes = {change.path: change for change in result.changes}
    left: list[Finding] = []
    lines = files = 0
    for path, findings in by_path.items():
        change = changes.get(path)
        wanted = [each for each in findings if not each.code.startswith(_NEVER)]
        left += [each for each in findings if each not in wanted]
        if change is None:
            file = Path(os.path.realpath(path))
            try:
                data = read_regular(file, NOTEBOOKS)
            except OSError:
                left += wanted
                continue
            change = ChangedFile(file, path, data, data, 0)
        new, refused = with_ignores(change.data, path, wanted, why)
        left += refused
        if new != change.data:
            lines += len({each.span.line for each in wanted if each not in refused})
            files += 1
            changes[path] = replace(change, data=new)
    notes = [f"wrote ignore comments in {many(lines, 'line')} of {many(files, 'file')}"] if lines else []
    places = [*dict.fromkeys(f"{visible(shown(each.path))}:{each.span.line}" for each in left)]
    notes += [f"ignore comments are not possible in {first_of(places, _MOST_NAMED)}"] if left else []
    return replace(result, changes=tuple(changes.values()), notes=(*result.notes, *notes))
