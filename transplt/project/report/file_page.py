"""The page of one file of a migration: its findings, and its diff side by side. It needs no script."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from transplt.base.finding import Finding
from transplt.base.grouped import grouped
from transplt.base.language import gettext, of_pages
from transplt.base.render.cell import visible
from transplt.base.render.templates import asset, fill
from transplt.project.report.page_data import SAYS, state_of
from transplt.project.report.shown_files import ShownFile

#: A page of more lines is none that anybody reads.
_MOST_ROWS = 5_000
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


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


@dataclass(frozen=True, slots=True)
class DiffRow:
    """One line of the input beside one of the output; numbers count from 1, None and "" where a side has no line."""

    old: int | None
    old_text: str
    new: int | None
    new_text: str
    same: bool = False


def diff_rows(patch: str, quoted: Sequence[tuple[int, str]] = ()) -> list[DiffRow]:
    """The rows of a patch, in order; `quoted` are lines of the input, (number, text), which it may lack."""
    rows = list(_of_patch(patch))
    there = {row.old for row in rows}
    waiting = [(number, text) for number, text in quoted if number not in there]
    made: list[DiffRow] = []
    shift = at = 0
    for row in rows:
        while at < len(waiting) and row.old is not None and waiting[at][0] < row.old:
            made.append(_quoted(*waiting[at], shift))
            at += 1
        if row.old is not None and row.new is not None:
            shift = row.new - row.old
        else:
            shift += 1 if row.old is None else -1
        made.append(row)
    return [*made, *(_quoted(number, text, shift) for number, text in waiting[at:])]


def _quoted(number: int, text: str, shift: int) -> DiffRow:
    return DiffRow(number, text, number + shift, text, same=True)


def _of_patch(patch: str) -> Iterator[DiffRow]:
    old = new = 0
    removed: list[tuple[int, str]] = []
    added: list[tuple[int, str]] = []
    for line in [*patch.split("\n"), "@"]:
        start, body = line[:1], line[1:].removesuffix("\r")
        if start == "-":
            if added:
                yield from _beside(removed, added)
            removed.append((old, body))
            old += 1
        elif start == "+":
            added.append((new, body))
            new += 1
        elif start in (" ", "@"):
            yield from _beside(removed, added)
            if found := _HUNK.match(line):
                old = int(found[1]) + (found[2] == "0")
                new = int(found[3]) + (found[4] == "0")
            elif start == " ":
                yield DiffRow(old, body, new, body, same=True)
                old, new = old + 1, new + 1


def _beside(removed: list[tuple[int, str]], added: list[tuple[int, str]]) -> Iterator[DiffRow]:
    """What went out beside what came in; both lists are empty afterwards."""
    for at in range(max(len(removed), len(added))):
        old, old_text = removed[at] if at < len(removed) else (None, "")
        new, new_text = added[at] if at < len(added) else (None, "")
        yield DiffRow(old, old_text, new, new_text)
    removed.clear()
    added.clear()
