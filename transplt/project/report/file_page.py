"""The page of one file of a migration: its findings, and its diff side by side. It needs no script."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from html import escape
from typing import Any

from transplt.base.finding import Finding
from transplt.base.grouped import grouped
from transplt.base.language import gettext, of_pages
from transplt.base.render.cell import visible
from transplt.base.render.templates import asset, fill
from transplt.project.report.diff_rows import DiffRow, diff_rows
from transplt.project.report.page_data import SAYS, state_of
from transplt.project.report.shown_files import ShownFile

#: A page of more lines is none that anybody reads.
_MOST_ROWS = 5_000


def file_page(
    project: str, file: ShownFile, index: str, before: ShownFile | None = None, after: ShownFile | None = None
) -> bytes:
    """The bytes of the page, UTF-8; `index` is what report.html is called, and the others are its neighbours."""
    rows = diff_rows(file.patch, file.lines)
    shown = rows[:_MOST_ROWS]
    there = {row.old for row in shown}
    return fill(
        "file.html.j2",
        project=project,
        path=file.path,
        left=file.left,
        done=file.done,
        up=f"../{index}#{file.anchor}",
        before=_link(before),
        after=_link(after),
        rows="\n".join(_rows(shown, file.findings)),
        elsewhere=_elsewhere(file.findings, there),
        cut=file.cut or len(rows) > _MOST_ROWS,
        css=asset("colors.css") + asset("diff.css") + asset("file.css"),
        **of_pages(),
    )


def _link(file: ShownFile | None) -> dict[str, str] | None:
    return {"href": posixpath.basename(file.page), "text": file.path} if file else None


def _rows(rows: list[DiffRow], findings: tuple[Finding, ...]) -> Iterator[str]:
    """Each row as HTML, with the findings of its line; a template takes several times as long for these."""
    by_line = grouped((finding.span.line, finding) for finding in findings)
    last: int | None = None
    for row in rows:
        at, notes = "", ""
        if row.old is not None:
            if last is not None and row.old > last + 1:
                yield '<div class="gap">...</div>'
            last = row.old
            at = f' id="L{row.old}"'
            notes = "".join(_note(each) for each in by_line.get(row.old, ()))
        yield (
            f'<div class="row{" same" * row.same}"{at}>{_side(row.old, row.old_text, "old", row.same)}'
            f'{_side(row.new, row.new_text, "new", row.same)}<span class="margin">{notes}</span></div>'
        )


def _side(number: int | None, text: str, side: str, same: bool) -> str:
    right = " right" if side == "new" else ""
    if number is None:
        return f'<span class="no{right} empty"></span><span class="{side} empty"></span>'
    cut = "" if same else " cut"
    return f'<span class="no{right}">{number}</span><span class="{side}{cut}">{escape(text)}</span>'


def _note(finding: Finding) -> str:
    state = state_of(finding)
    effort = f"_{finding.effort.value}" if finding.effort and state == "left" else ""
    each = {
        "code": finding.code, "state": state, "says": gettext(SAYS[f"{state}{effort}"]),
        "text": visible(finding.text), "help": visible(finding.ignored or finding.help),
    }  # fmt: skip
    help_ = f' <span class="help">{escape(each["help"])}</span>' if each["help"] and each["state"] != "done" else ""
    words = f"{escape(each['code'])} {each['says']}: {escape(each['text'])}"
    return f'<span class="{each["state"]}">{words}{help_}</span>'


def _elsewhere(findings: tuple[Finding, ...], there: set[int | None]) -> list[dict[str, Any]]:
    """Findings of lines that the diff does not have; the first of a line can be linked to."""
    made = grouped((finding.span.line, finding) for finding in findings if finding.span.line not in there)
    return [
        {"note": _note(each), "line": line, "at": "" if at else f"L{line}"}
        for line, same in made.items()
        for at, each in enumerate(same)
    ]
