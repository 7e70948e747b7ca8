"""report.html: a whole migration on one page that needs no network: what is to do, what was done, and every diff.

The page is the same for the same input: no times, no absolute paths. Lists and diffs are drawn by a script when they
come into view, from data in the page, so that thousands of findings cost nothing before somebody looks at them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import PurePosixPath
from typing import Any

import transplt
from transplt.base.finding import NO_TOKENS, Effort, Finding, Level
from transplt.engine.actions.action import Action
from transplt.engine.actions.actions import actions_of, total_hours
from transplt.engine.actions.effort import effort_of
from transplt.render.cell import many, visible
from transplt.render.templates import asset, fill
from transplt.report.action_lines import EFFORT_TEXT, about, how_many, place_text
from transplt.report.code_pages import code_pages
from transplt.report.records import FileRecord, RunResult
from transplt.report.titles import title
from transplt.report.token_view import token_view
from transplt.rules.host_settings import host_settings_by_group

_EFFORTS = (Effort.LOW.value, Effort.MEDIUM.value, Effort.HIGH.value)
_EFFORT_NAMES = {
    "low": "low: minutes", "medium": "medium: an hour or two", "high": "high: a day or more", "": "not known"
}  # fmt: skip
_MOST_BARS = 12
_MOST_FILES = 15
#: So many places of an action are listed; the findings below are all of them.
_MOST_PLACES = 60
_MOST_REPEATED = 3
#: How the kinds of files are called where the same word stands in many of them.
_KINDS = {
    ".py": "Python", ".yaml": "YAML", ".yml": "YAML", ".json": "JSON", ".toml": "TOML", ".sh": "shell",
    ".ipynb": "notebooks", ".md": "documents",
}  # fmt: skip
#: So many findings are on the page, those that are left first; a row is some fifty bytes.
_MOST_FINDINGS = 20_000
#: So many characters of diffs, and of source lines, are on the page in all; files with work left come first.
_MOST_PATCHES = 6_000_000
_MOST_LINES = 3_000_000
#: A longer diff is cut in the page; the files themselves hold the rest.
_MOST_PATCH = 400_000
#: A longer source line (a notebook's output) is cut, too.
_MOST_LINE = 400


def render_html(result: RunResult) -> bytes:
    """The bytes of the page, UTF-8."""
    findings = result.findings
    open_findings = [finding for finding in findings if finding.open]
    actions = actions_of(findings)
    data = page_data(result)
    omitted = len(findings) - sum(len(file[2]) for file in data["files"])
    return fill(
        "report.html.j2",
        name=visible(result.name),
        version=transplt.__version__,
        target=result.target,
        style=result.settings.style,
        actions=action_rows(actions),
        hours=about(total_hours(actions)),
        tokens=result.tokens,
        automatic=automatic_share(result),
        edits=sum(finding.applied for finding in findings),
        unsafe=sum(finding.applied and finding.level is Level.UNSAFE for finding in findings),
        left=len(open_findings),
        python=len(result.python_files),
        changed=sum(record.changed for record in result.python_files),
        failed=len(result.failed) + len(result.unread),
        token_bar=token_bar(result),
        efforts=effort_bars(open_findings),
        codes=code_bars(open_findings),
        files=ranked_files(result)[:_MOST_FILES],
        host=host_settings_by_group() if result.settings.tune else (),
        host_script=result.reports.get("env_npu.sh", ""),
        css=asset("report.css"),
        script=asset("theme.js") + asset("report.js"),
        pages=code_pages(data["codes"]),
        omitted=f"{many(omitted, 'finding')} are not on this page; change_list.csv and unsupported_op.xlsx hold all."
        if omitted
        else "",
        data=_embedded(data),
    )


def _embedded(table: dict[str, Any]) -> str:
    """JSON that can stand inside a script element."""
    return json.dumps(table, separators=(",", ":")).replace("<", "\\u003c")


def action_rows(actions: Sequence[Action]) -> list[dict[str, Any]]:
    """The actions as the template shows them."""
    return [
        {
            "title": visible(action.title),
            "blocks": action.heading,
            "effort": EFFORT_TEXT[action.effort],
            "many": "one choice, " * _one_choice(action) + how_many(action),
            "repeated": _repeated(action),
            "first": visible(action.first),
            "how": visible(action.how),
            "codes": action.codes,
            "places": [visible(place_text(place)) for place in action.places[:_MOST_PLACES]],
            "more": max(len(action.places) - _MOST_PLACES, 0),
            "parts": action_rows(action.parts),
        }
        for action in actions
    ]


def _one_choice(action: Action) -> bool:
    """Whether what is decided once holds for several places, as they are about one thing."""
    return action.count > 1 and len({place.name for place in action.places}) == 1


def _repeated(action: Action) -> str:
    """What comes again and again: `52 times nccl in YAML`; empty where an action is about one thing in any case."""
    counts = Counter((each.api, _KINDS.get(PurePosixPath(each.path).suffix.lower(), "")) for each in action.findings)
    often = [(-count, api, kind) for (api, kind), count in counts.items() if api and kind and count > 1]
    rows = (f"{-count} times {visible(api)} in {kind}" for count, api, kind in sorted(often) if api not in action.title)
    return ", ".join(islice(rows, _MOST_REPEATED))


def automatic_share(result: RunResult) -> int | None:
    """Percent of the CUDA tokens of Python files with work in them that were converted; None when there are none."""
    tokens = sum((record.tokens for record in result.python_files), NO_TOKENS)
    work = tokens.converted + tokens.manual + tokens.unknown
    return tokens.converted * 100 // work if work else None


def token_bar(result: RunResult) -> list[dict[str, Any]]:
    """The parts of the bar of tokens: name, count, and their place in percent."""
    tokens = result.tokens
    parts = (
        ("converted", tokens.converted),
        ("manual", tokens.manual),
        ("unknown", tokens.unknown),
        ("ignored", tokens.ignored),
    )
    bar, at = [], 0.0
    for name, count in parts:
        width = count * 100 / tokens.found if tokens.found else 0.0
        bar.append({"name": name, "count": count, "x": round(at, 3), "width": round(width, 3)})
        at += width
    return bar


def effort_bars(findings: list[Finding]) -> list[dict[str, Any]]:
    """How many open findings there are of each effort; those without one last, where there are any."""
    counts = Counter(_effort(finding) for finding in findings)
    keys = [*_EFFORTS, *([""] if counts[""] else [])]
    return _bars([(key, _EFFORT_NAMES[key], counts[key]) for key in keys])


def code_bars(findings: list[Finding]) -> list[dict[str, Any]]:
    """The codes with the most open findings; the rest of them as one bar."""
    counts = sorted(Counter(finding.code for finding in findings).items(), key=lambda item: (-item[1], item[0]))
    rows = [(code, f"{code} {title(code)}".rstrip(), count) for code, count in counts[:_MOST_BARS]]
    if rest := counts[_MOST_BARS:]:
        rows.append(("", many(len(rest), "more code"), sum(count for _, count in rest)))
    return _bars(rows)


def _bars(rows: list[tuple[str, str, int]]) -> list[dict[str, Any]]:
    most = max((count for _, _, count in rows), default=0)
    return [
        {"key": key, "text": text, "count": count, "width": round(count * 100 / most, 2) if most else 0}
        for key, text, count in rows
    ]


def ranked_files(result: RunResult) -> list[dict[str, Any]]:
    """Files with open findings, the most work first."""
    rows = []
    for record in result.files:
        effort = effort_of(record.path, record.findings)
        if effort.left:
            path, edits = visible(record.path), effort.automatic
            rows.append({"path": path, "left": effort.left, "hours": effort.hours, "edits": edits})
    return sorted(rows, key=lambda row: (-row["hours"], row["path"]))


def _effort(finding: Finding) -> str:
    return finding.effort.value if finding.effort else ""


def page_data(result: RunResult) -> dict[str, Any]:
    """What the script draws: files with their findings, source lines and diffs; repeated texts stand there once."""
    texts: dict[str, int] = {}

    def text(value: str) -> int:
        return texts.setdefault(visible(value), len(texts))

    shown = _on_the_page(result)
    files = [
        _file(record, [finding for finding in record.findings if id(finding) in shown], text)
        for record in result.files
        if record.findings or record.patch
    ]
    _bound(files)
    files += [[visible(finding.path), "", [_row(finding, text)], [], False] for finding in result.unread]
    codes = sorted({row[2] for file in files for row in file[2]})
    return {
        "name": visible(result.name),
        "codes": {code: title(code) for code in codes},
        "files": files,
        "texts": list(texts),
        "tokens": token_view(result),
    }


def _on_the_page(result: RunResult) -> set[int]:
    """The findings (their ids) that the page lists: those that are left first."""
    every = [finding for record in result.files for finding in record.findings]
    every.sort(key=lambda finding: not finding.open)
    return {id(finding) for finding in every[:_MOST_FINDINGS]}


def _bound(files: list[list[Any]]) -> None:
    """Take diffs and lines from files when those before them have used up the page; files with work left come first."""
    patches, lines = _MOST_PATCHES, _MOST_LINES
    for file in sorted(files, key=lambda file: not any(row[3] == "left" for row in file[2])):
        patches -= len(file[1])
        lines -= sum(len(line) for _, line in file[3])
        if patches < 0:
            file[1], file[4] = "", True
        if lines < 0:
            file[3] = []


def _file(record: FileRecord, findings: Sequence[Finding], text: Any) -> list[Any]:
    patch = record.patch
    cut = len(patch) > _MOST_PATCH
    if cut:
        patch = patch[: patch.rindex(b"\n", 0, _MOST_PATCH) + 1]
    shown = patch[max(patch.find(b"\n@@ "), 0) :].decode("utf-8", "replace").lstrip("\n")
    rows = [_row(finding, text) for finding in findings]
    lines = [[line, source[:_MOST_LINE] + "..." * (len(source) > _MOST_LINE)] for line, source in record.lines]
    return [visible(record.path), shown, rows, lines, cut]


def _row(finding: Finding, text: Any) -> list[Any]:
    """Line, column, code, state, effort, message, help, and the reason why it does not count."""
    state = "ignored" if finding.ignored else "left" if finding.open else "info"
    if finding.applied:
        state = "unsafe" if finding.level is Level.UNSAFE else "done"
    return [
        finding.span.line,
        finding.span.column,
        finding.code,
        state,
        _effort(finding),
        text(finding.text),
        text(finding.help),
        text(finding.ignored),
    ]
