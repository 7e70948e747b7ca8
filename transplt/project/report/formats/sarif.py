"""Findings as SARIF 2.1.0 (OASIS standard), with the edits as fixes and stable fingerprints."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import transplt
from transplt.base.finding import Level, Span
from transplt.project.report.check_results import CheckedFinding, CheckResult

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {
    Level.SAFE: "warning", Level.UNSAFE: "warning", Level.MANUAL: "error", Level.UNKNOWN: "error", Level.INFO: "note"
}  # fmt: skip


def render_sarif(result: CheckResult) -> str:
    """One run; findings of the baseline are there too, marked as unchanged."""
    items = (*result.items, *result.info)
    codes = sorted({item.finding.code for item in items})
    index = {code: place for place, code in enumerate(codes)}
    run = {
        "tool": {
            "driver": {
                "name": "transplt",
                "version": transplt.__version__,
                "semanticVersion": transplt.__version__,
                "rules": [_rule(code) for code in codes],
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": [_result(item, index) for item in items],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _rule(code: str) -> dict[str, Any]:
    from transplt.rules.pages import DiagnosticError, load

    try:
        page = load(code)
    except DiagnosticError:
        return {"id": code}
    help_text = "\n\n".join(page.sections[name] for name in ("Why", "What to do") if name in page.sections)
    rule: dict[str, Any] = {
        "id": code,
        "shortDescription": {"text": page.title},
        "defaultConfiguration": {"level": _LEVELS[page.level]},
    }
    if help_text:
        rule["fullDescription"] = {"text": help_text}
        rule["help"] = {"text": help_text, "markdown": help_text}
    return rule


def _result(item: CheckedFinding, index: dict[str, int]) -> dict[str, Any]:
    finding = item.finding
    artifact = {"uri": quote(finding.path.encode("utf-8", "surrogateescape"), safe="/")}
    text = finding.text + (f"\n{finding.help}" if finding.help else "")
    table: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": index[finding.code],
        "level": _LEVELS[finding.level],
        "message": {"text": text},
        "locations": [{"physicalLocation": {"artifactLocation": artifact, "region": _region(finding.span)}}],
        "partialFingerprints": {"transplt/v1": item.fingerprint},
        "baselineState": "unchanged" if item.known else "new",
        "properties": {"fix": item.fix, "effort": finding.effort.value if finding.effort else ""},
    }
    if finding.edit is not None:
        replacement = {"deletedRegion": _region(finding.span), "insertedContent": {"text": finding.edit.after}}
        table["fixes"] = [
            {
                "description": {"text": finding.text},
                "artifactChanges": [{"artifactLocation": artifact, "replacements": [replacement]}],
            }
        ]
    return table


def _region(span: Span) -> dict[str, int]:
    return {
        "startLine": span.line,
        "startColumn": span.column,
        "endLine": span.end_line,
        "endColumn": span.end_column,
    }
