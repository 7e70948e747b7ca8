"""Findings as JSON, with their edits: described in `docs/reference/json.md`, its schema is `docs/check.schema.json`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import transplt
from transplt.engine.actions.actions import actions_of
from transplt.project.report.action_lines import action_object
from transplt.project.report.check_results import CheckedFinding, CheckResult
from transplt.project.report.formats.statistics import CodeCount, statistics

FORMAT = 1


def render_json(result: CheckResult) -> str:
    """One document: the tool, a summary, the findings, and what is to do about them."""
    # Remarks show what a project builds: open findings belong to the same action by them.
    known = (*result.findings, *(item.finding for item in result.info))
    table = {
        "tool": "transplt",
        "version": transplt.__version__,
        "format": FORMAT,
        "summary": {
            "files": result.files,
            "findings": len(result.new),
            "known": len(result.items) - len(result.new),
            "fixed": result.fixed,
            "tokens": asdict(result.tokens),
            "torch": [
                {"version": each.version, "why": each.why, "gap": each.gap, "weighed": [*each.weighed]}
                for each in result.torch
            ],
        },
        "findings": [finding_table(item) for item in (*result.items, *result.info)],
        "actions": [action_object(action) for action in actions_of(known)],
    }
    return json.dumps(table, indent=1) + "\n"


def render_json_lines(result: CheckResult) -> str:
    """One finding a line."""
    return "".join(json.dumps(finding_table(item)) + "\n" for item in (*result.items, *result.info))


def render_statistics_json(result: CheckResult) -> str:
    """A list, one object a code."""
    return json.dumps([_count_table(row) for row in statistics(result)], indent=1) + "\n"


def render_statistics_json_lines(result: CheckResult) -> str:
    """One code a line, the same object."""
    return "".join(json.dumps(_count_table(row)) + "\n" for row in statistics(result))


def _count_table(row: CodeCount) -> dict[str, Any]:
    return {"code": row.code, "title": row.title or None, "count": row.count, "fixable": row.fixable}


def finding_table(item: CheckedFinding) -> dict[str, Any]:
    """One finding. Lines and columns count from 1, columns in characters; offsets are bytes of the text as UTF-8."""
    finding = item.finding
    span, edit = finding.span, finding.edit
    return {
        "path": finding.path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"),
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
        "start": span.start,
        "end": span.end,
        "code": finding.code,
        "level": finding.level.value,
        "effort": finding.effort.value if finding.effort else None,
        "message": finding.text,
        "api": finding.api or None,
        "help": finding.help or None,
        "fix": item.fix or None,
        "edit": {"operation": edit.operation.value, "before": edit.before, "after": edit.after} if edit else None,
        "fingerprint": item.fingerprint,
        "known": item.known,
    }
