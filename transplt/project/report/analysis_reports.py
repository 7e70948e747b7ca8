"""Renders a `Summary`: lines for a terminal, CSV files, JSON, and the table that ranks several projects."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import transplt
from transplt.base.finding import Finding
from transplt.base.language import gettext, ngettext, translated
from transplt.base.render.cell import cell, visible
from transplt.engine.actions.effort import FileEffort, percent
from transplt.project.report.action_lines import action_object, converted, few, first_actions
from transplt.project.report.action_rows import ACTION_COLUMNS, action_rows
from transplt.project.report.analysis_summary import Summary
from transplt.project.report.target_lines import target_line
from transplt.project.report.tokens import csv_bytes
from transplt.rules.support_tables import published_for

#: What marks a folder as ours, and carries a library's extensions to the projects that import it.
DOCUMENT = "analysis.json"
RANKING = "ranking.csv"
_COLUMNS = ("file", "line", "column", "api", "code", "level", "effort", "message", "help")
_RANKING_COLUMNS = (
    "project", "python files", "automatic", "left", "share automatic", "hours", "unsupported", "extensions", "packages",
    "limited", "unknown", "lowest torch",
)  # fmt: skip
_FORMAT = 2
_MOST = 5


def csv_files(summary: Summary) -> dict[str, bytes]:
    """File name -> content: a file for each sheet, and the APIs, the efforts and the actions."""
    files = {
        f"{sheet.replace(' ', '_').replace('-', '_')}.csv": csv_bytes([_COLUMNS, *map(_row, summary.rows(sheet))], "\n")
        for sheet in summary.counts
    }
    apis = ((cell(use.api), use.uses, use.status, cell(use.limit)) for use in summary.apis)
    efforts = (
        (cell(each.path), each.automatic, each.low, each.medium, each.high, round(each.share, 3), each.hours)
        for each in (*summary.files, summary.effort)
        if each.automatic or each.left
    )
    columns = ("file", "automatic", "low", "medium", "high", "share automatic", "hours")
    files["apis.csv"] = csv_bytes([("api", "uses", "status", "limit"), *apis], "\n")
    files["effort.csv"] = csv_bytes([columns, *efforts], "\n")
    files["actions.csv"] = csv_bytes([ACTION_COLUMNS, *action_rows(summary.actions)], "\n")
    return files


def _row(finding: Finding) -> tuple[str | int, ...]:
    effort = finding.effort.value if finding.effort else ""
    return (
        cell(finding.path), finding.span.line, finding.span.column, cell(finding.api), finding.code,
        finding.level.value, effort, cell(finding.text), cell(finding.help),
    )  # fmt: skip


def document(summary: Summary) -> dict[str, Any]:
    """Everything as one JSON value; keys are stable, `format` counts changes of the form."""
    from transplt.rules.tables import read_table

    result = summary.result
    return {
        "tool": "transplt",
        "version": transplt.__version__,
        "format": _FORMAT,
        "project": result.name,
        "torch": {"version": result.target.version, "why": result.target.why, "weighed": [*result.target.weighed]},
        "hardware": result.settings.hardware,
        "counts": summary.counts,
        "versions": {
            "lowest": summary.versions.lowest,
            "best": summary.versions.best,
            "unsupported": {version: list(apis) for version, apis in summary.versions.unsupported.items()},
        },
        "effort": _effort_object(summary.effort),
        "files": [_effort_object(each) for each in summary.files if each.automatic or each.left],
        "actions": [action_object(action) for action in summary.actions],
        "apis": [
            {"api": use.api, "uses": use.uses, "status": use.status, "limit": use.limit} for use in summary.apis
        ],
        "extensions": summary.fallen,
        "findings": {sheet: [{
            "path": each.path, "line": each.span.line, "column": each.span.column, "api": each.api, "code": each.code,
            "level": each.level.value, "effort": each.effort.value if each.effort else None,
            "message": each.text, "help": each.help,
        } for each in summary.rows(sheet)] for sheet in summary.counts},
        "source": str(read_table("support/api_support.json")["source"]),
    }  # fmt: skip


def _effort_object(each: FileEffort) -> dict[str, Any]:
    return {
        "path": each.path, "automatic": each.automatic, "low": each.low, "medium": each.medium, "high": each.high,
        "share_automatic": round(each.share, 3), "hours": each.hours,
    }  # fmt: skip


def analysis_json(summaries: Sequence[Summary]) -> str:
    """One document, or a list of them for several projects."""
    value: Any = document(summaries[0]) if len(summaries) == 1 else [document(each) for each in summaries]
    return json.dumps(value, indent=1, ensure_ascii=True) + "\n"


def analysis_csv(summaries: Sequence[Summary]) -> str:
    """All findings of all sheets, or the ranking of several projects."""
    if len(summaries) > 1:
        return ranking_csv(summaries).decode("utf-8")
    rows = ((sheet, *_row(finding)) for sheet in summaries[0].counts for finding in summaries[0].rows(sheet))
    return csv_bytes([("sheet", *_COLUMNS), *rows], "\n").decode("utf-8")


# --- for a person ----------------------------------------------------------------------------------------------------


def analysis_text(summaries: Sequence[Summary]) -> str:
    """What a person reads: one project in some thirty lines, several as a table."""
    lines = _one(summaries[0]) if len(summaries) == 1 else _ranking(summaries)
    return "".join(f"{line}\n" for line in lines)


def _one(summary: Summary) -> Iterator[str]:
    result, effort = summary.result, summary.effort
    yield visible(result.name)
    yield f"  {target_line(result.target)}"
    yield from first_actions(summary.actions, _MOST) if summary.actions else ("  " + gettext("nothing left to do"),)
    places = converted(effort.done, effort.counted)
    left = ngettext("{count} finding", "{count} findings", effort.left)
    yield "  " + gettext("{places}; left in all files: {left}", places=places, left=left)
    if found := [f"{count} {sheet}" for sheet, count in summary.counts.items() if count]:
        yield "  " + gettext("findings and remarks, by sheet: {counts}", counts=gettext(", ").join(found))
    yield "  " + gettext(
        "{files} Python files, {apis} APIs of torch on {card}: {statuses}",
        files=len(result.python_files), apis=len(summary.apis), card=result.settings.hardware,
        statuses=_statuses(summary) or "-",
    )  # fmt: skip
    yield f"  {translated(summary.versions.text())}"
    aim, spoken = result.target.version, published_for(result.target.version)
    if spoken != aim:
        yield "  " + gettext(
            "the support lists for torch {aim} are not published yet: those for {spoken} are used",
            aim=aim, spoken=spoken,
        )  # fmt: skip
    if busy := [each for each in summary.files if each.left]:
        yield "  " + gettext("most work: {files}", files=few([visible(each.path) for each in busy]))
    yield "  " + gettext("shapes that change at run time: transplt run --shapes")


def _statuses(summary: Summary) -> str:
    """How many APIs have which support, those that there are."""
    counts = summary.statuses
    words = (
        (counts["yes"] + counts["host"], gettext("supported")),
        (counts["limited"], gettext("with a documented limit")),
        (counts["on the CPU"], gettext("computed on the CPU")),
        (counts["no"], gettext("unsupported")),
        (counts["doubted"], gettext("unsupported according to the documentation only")),
        (counts["unverified"], gettext("unverified")),
        (counts["converted"], gettext("converted or reported by the migration")),
    )
    return gettext(", ").join(gettext("{count} {status}", count=count, status=word) for count, word in words if count)


def _ranking_rows(summaries: Sequence[Summary]) -> list[tuple[str | int, ...]]:
    rows: list[tuple[str | int, ...]] = []
    for each in sorted(summaries, key=lambda summary: (summary.effort.hours, summary.result.name)):
        counts = each.counts
        packages = sum(finding.open for finding in each.rows("third-party"))
        extensions = sum(finding.open for finding in each.rows("extensions"))
        rows.append(
            (
                each.result.name, len(each.result.python_files), each.effort.automatic, each.effort.left,
                percent(each.effort.share, each.effort.counted), round(each.effort.hours), counts["unsupported"],
                extensions, packages, counts["limited"], counts["unknown"], each.versions.lowest or "-",
            )
        )  # fmt: skip
    return rows


def ranking_csv(summaries: Sequence[Summary]) -> bytes:
    """The ranking of several projects, the least work first."""
    rows = ((cell(str(row[0])), *row[1:]) for row in _ranking_rows(summaries))
    return csv_bytes([_RANKING_COLUMNS, *rows], "\n")


def _ranking(summaries: Sequence[Summary]) -> Iterator[str]:
    table = [_RANKING_COLUMNS, *[tuple(visible(str(value)) for value in row) for row in _ranking_rows(summaries)]]
    widths = [max(len(str(row[column])) for row in table) for column in range(len(_RANKING_COLUMNS))]
    for row in table:
        cells = [str(row[0]).ljust(widths[0])]
        cells += [str(value).rjust(width) for value, width in zip(row[1:], widths[1:], strict=True)]
        yield "  ".join(cells).rstrip()
    yield ""
    yield "least work first; hours are rough: 0.25 for less than one, 1.5 for some, 8 for a day or more"
