"""report.html: a whole migration on a page that needs no network: what is to do, what was done, and every diff.

The page is the same for the same input: no times, no absolute paths. Sections fold, and what is long is folded at
first; diffs that are large have a page each, in a folder beside it. Actions, diffs and the pages of codes stand in the
page as they are; the lists of findings and tokens are drawn by a script when they come into view, from data in the
page, so that thousands of findings cost nothing before somebody looks at them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import transplt
from transplt.base.disk.manifest import PAGES
from transplt.base.efforts import EFFORT_TEXT
from transplt.base.finding import Finding, Level
from transplt.base.language import gettext, marked, ngettext, of_pages, translated
from transplt.base.render.cell import visible
from transplt.base.render.templates import asset, fill
from transplt.engine.actions.action import Action
from transplt.engine.actions.actions import actions_of, separate
from transplt.engine.actions.effort import FileEffort, effort_of, percent, total
from transplt.project.report.action_lines import about, hours_of, how_many, place_text
from transplt.project.report.file_page import file_page
from transplt.project.report.migration_record import RunResult
from transplt.project.report.page_data import page_data
from transplt.project.report.shown_files import ShownFile, shown_files
from transplt.project.report.snippets import snippets
from transplt.project.report.target_lines import target_details
from transplt.project.report.titles import title
from transplt.rules.host_settings import host_settings_by_group
from transplt.rules.pages import all_codes, load

_MOST_BARS = 12
_MOST_FILES = 15
#: So many places of an action are seen at once, and so many are listed; the findings are all of them.
_FIRST_PLACES = 5
_MOST_PLACES = 60
#: With more actions, groups that do not stop a program are folded.
_MOST_OPEN = 12
_STOPPING = frozenset({"import", "first step", "numbers"})


TEMPLATE = "report.html.j2"
#: The project's own message is at the finding.
_NAMES = {"Message": marked("An example of the message")}
_FENCE = re.compile(r"^```[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\([^)\s]+\)")
_BOLD = re.compile(r"(?<![\w)])\*\*(?=\S)(.+?)\*\*(?!\w)")
_CODE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True, slots=True)
class Report:
    """The bytes of report.html, UTF-8, and the files that have a page of their own."""

    page: bytes
    name: str
    own: tuple[ShownFile, ...]

    def pages(self, index: str) -> Iterator[tuple[str, bytes]]:
        """Paths beside report.html, with the bytes of each; `index` is what report.html is called."""
        for at, file in enumerate(self.own):
            near = (self.own[at - 1] if at else None, self.own[at + 1] if at + 1 < len(self.own) else None)
            yield file.page, file_page(self.name, file, index, *near)


def render_report(result: RunResult, folder: str = PAGES) -> Report:
    """The report; `folder` is that of the pages of single files, which may stay unused."""
    findings = result.findings
    open_findings = [finding for finding in findings if finding.open]
    actions = actions_of(findings, result.settings.style)
    files = shown_files(result, folder)
    data = page_data(result, files)
    places = {file.path: file for file in files}
    pages = code_pages(data["codes"])
    host = host_settings_by_group() if result.settings.tune else ()
    omitted = len(findings) - sum(len(file.findings) for file in files)
    groups = action_groups(actions, places)
    edits, left, counted = len(result.edits), len(open_findings), of_python(result)
    contents = _contents(len(separate(actions)), groups, len(findings), len(files), host=bool(host), pages=len(pages))
    page = fill(
        TEMPLATE,
        name=visible(result.name),
        version=transplt.__version__,
        target=result.target,
        why=visible(translated(result.target.why)),
        reasons=list(target_details(result.target)),
        style=result.settings.style,
        contents=contents,
        headings={each["at"]: each["text"] for each in contents},
        groups=groups,
        split=pieces,
        actions=len(separate(actions)),
        hours=hours_of(actions),
        tokens=result.tokens,
        automatic=percent(counted.share, counted.counted),
        counted=counted,
        edits=edits,
        unsafe=sum(finding.applied and finding.level is Level.UNSAFE for finding in findings),
        left=left,
        remarks=result.counts_by_code()["remarks"].total(),
        python=len(result.python_files),
        changed=sum(record.changed for record in result.python_files),
        failed=len(result.failed) + len(result.unread),
        token_bar=token_bar(result),
        efforts=[(each.value, gettext(text)) for each, text in EFFORT_TEXT.items()],
        codes=code_bars(open_findings),
        ranked=ranked_files(result)[:_MOST_FILES],
        files=files,
        host=host,
        host_script=result.reports.get("env_npu.sh", ""),
        css=asset("colors.css") + asset("report.css") + asset("diff.css") + asset("layout.css"),
        script=asset("theme.js") + asset("report.js"),
        pages=pages,
        omitted=omitted,
        data=json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"),  # it stands inside a script element
        **of_pages(),
    )
    return Report(page, visible(result.name), tuple(file for file in files if file.page))


def _contents(
    actions: int, groups: Sequence[dict[str, Any]], findings: int, files: int, *, host: bool, pages: int
) -> list[dict[str, Any]]:
    """The table of contents: where each section is, what it is called, and how much it holds ("" where that says
    nothing). The template has the sections in this order, and what a run and a proof put in stands behind the first.
    """
    rows: list[tuple[str, str, int | str, Sequence[dict[str, Any]]]] = [
        ("do", gettext("What to decide and to do"), actions, groups if actions > 1 else ()),
        ("summary", gettext("Summary"), "", ()),
        ("rest", gettext("Where the work is"), "", ()),
        ("findings", gettext("Edits, findings and remarks"), findings, ()),
        ("files", gettext("Files and diffs"), files, ()),
        *([("host", gettext("Settings of the host to try"), "", ())] if host else []),
        ("tokens", gettext("Every CUDA word"), "", ()),
        *([("pages", gettext("What the codes mean"), pages, ())] if pages else []),
    ]
    return [{"at": at, "text": text, "count": count, "below": below} for at, text, count, below in rows]


def action_groups(actions: Sequence[Action], places: Mapping[str, ShownFile]) -> list[dict[str, Any]]:
    """The actions under what they block, numbered through; those that stop nothing are folded where there are many."""
    groups: list[dict[str, Any]] = []
    number = 1
    for heading, same in groupby(actions, key=lambda action: action.heading):
        rows = list(same)
        stops = not groups or rows[0].stands in _STOPPING
        groups.append({
            "at": f"do-{len(groups) + 1}", "text": translated(heading),
            "short": translated(rows[0].blocking), "count": len(separate(rows)),
            "first": number,
            "open": stops or len(actions) <= _MOST_OPEN,
            "rows": [_action_row(action, f"action-{at}", places) for at, action in enumerate(rows, number)],
        })  # fmt: skip
        number += len(rows)
    return groups


def _action_row(action: Action, at: str, places: Mapping[str, ShownFile]) -> dict[str, Any]:
    """An action as the template shows it; `at` is the id of what it unfolds."""
    links = []
    for place in action.places[:_MOST_PLACES]:
        file = places.get(visible(place.path))  # None where the page does not have it
        links.append({"text": visible(place_text(place)), "href": file.place(place.lines[0]) if file else ""})
    return {
        "at": at,
        "title": visible(translated(action.title)),
        "key": visible(action.title),
        "effort": about(action.hours),
        "many": gettext("{first}; {places}", first=visible(action.first), places=how_many(action)),
        "how": visible(translated(action.how)),
        "english": translated(action.how) == action.how,
        "snippets": [(translated(each.where), "\n".join(map(visible, each.text.split("\n"))))
                     for each in snippets(action)],
        "codes": action.codes,
        "places": links[:_FIRST_PLACES],
        "further": links[_FIRST_PLACES:],
        "more": max(len(action.places) - _MOST_PLACES, 0),
        "parts": [_action_row(part, f"{at}-{number}", places) for number, part in enumerate(action.parts, 1)],
    }


def of_python(result: RunResult) -> FileEffort:
    """What counts of the places in Python, and what of it is edited, as `analyze` and `survey` give it."""
    efforts = (effort_of(record.path, record.findings) for record in result.python_files)
    return total(efforts, {record.path for record in result.python_files}, 0.0)


def token_bar(result: RunResult) -> list[dict[str, Any]]:
    """The parts of the bar of tokens: name, count, and their place in percent."""
    tokens = result.tokens
    parts = (
        ("converted", marked("converted"), tokens.converted),
        ("manual", marked("left"), tokens.manual),
        ("unknown", marked("not understood"), tokens.unknown),
        ("ignored", marked("ignored, with a reason below"), tokens.ignored),
    )
    bar, at = [], 0.0
    for name, text, count in filter(lambda part: part[2], parts):
        width = count * 100 / tokens.found if tokens.found else 0.0
        bar.append({"name": name, "text": gettext(text), "count": count, "x": round(at, 3), "width": round(width, 3)})
        at += width
    return bar


def code_bars(findings: list[Finding]) -> list[dict[str, Any]]:
    """The codes with the most open findings; the rest of them as one bar."""
    counts = sorted(Counter(finding.code for finding in findings).items(), key=lambda item: (-item[1], item[0]))
    rows = [(code, f"{code} {translated(title(code))}".rstrip(), count) for code, count in counts[:_MOST_BARS]]
    if rest := counts[_MOST_BARS:]:
        others = ngettext("{count} more code", "{count} more codes", len(rest))
        rows.append(("", others, sum(count for _, count in rest)))
    most = max((count for _, _, count in rows), default=0)
    names = ("key", "text", "count", "width")
    return [dict(zip(names, (*row, round(row[2] * 100 / most, 2)), strict=True)) for row in rows]


def ranked_files(result: RunResult) -> list[dict[str, Any]]:
    """Files with open findings, the most work first."""
    rows = []
    for record in result.files:
        effort = effort_of(record.path, record.findings)
        if effort.left:
            edits = sum(finding.applied for finding in record.findings)
            rows.append({"path": visible(record.path), "left": effort.left, "hours": effort.hours, "edits": edits})
    return sorted(rows, key=lambda row: (-row["hours"], row["path"]))


def code_pages(codes: Iterable[str]) -> dict[str, dict[str, Any]]:
    """By code, sorted: title and sections of its page. Codes of users' rules have none."""
    pages = {code: load(code) for code in sorted({*codes} & {*all_codes()})}
    sections = {
        code: [{"name": _NAMES.get(name, name), "blocks": _blocks(text)} for name, text in page.sections.items()]
        for code, page in pages.items()
    }
    return {code: {"title": page.title, "sections": sections[code]} for code, page in pages.items()}


def _blocks(text: str) -> list[dict[str, Any]]:
    """Paragraphs and items of lists, with their pieces of code, and blocks of code; links are their words."""
    blocks: list[dict[str, Any]] = []
    for number, part in enumerate(_FENCE.split(text)):
        if number % 2:
            blocks.append({"code": True, "text": part})
            continue
        for paragraph in re.split(r"\n\s*\n|\n(?=- )", part.strip()):
            words = _BOLD.sub(r"\1", _LINK.sub(r"\1", paragraph))
            if found := pieces(re.sub(r"\A- ", "\u2022 ", words)):
                blocks.append({"code": False, "pieces": found})
    return blocks


def pieces(text: str) -> list[dict[str, Any]]:
    """A paragraph, with what stands in backticks told from the rest."""
    return [{"code": bool(at % 2), "text": piece} for at, piece in enumerate(_CODE.split(text)) if piece]
