"""Findings for CI systems: annotations of GitHub Actions, GitLab's code quality report, JUnit XML."""

from __future__ import annotations

import json
from xml.sax.saxutils import escape, quoteattr

from transplt.base.finding import Effort
from transplt.base.grouped import grouped
from transplt.base.render.cell import visible
from transplt.project.report.check_results import CheckedFinding, CheckResult


def render_github(result: CheckResult) -> str:
    """Workflow commands, one line a finding (docs.github.com, "Workflow commands for GitHub Actions")."""
    lines = []
    for item in result.new:
        span = item.finding.span
        place = f"file={_property(visible(item.finding.path))},line={span.line},endLine={span.end_line}"
        if span.line == span.end_line:
            place += f",col={span.column},endColumn={span.end_column}"
        lines.append(f"::error title={_property(item.finding.code)},{place}::{_data(_sentence(item))}\n")
    return "".join(lines)


def _data(text: str) -> str:
    return visible(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _sentence(item: CheckedFinding) -> str:
    finding = item.finding
    return f"{finding.code} {finding.text}" + (f" (help: {finding.help})" if finding.help else "")


_SEVERITY = {Effort.LOW: "minor", Effort.MEDIUM: "major", Effort.HIGH: "critical"}


def render_gitlab(result: CheckResult) -> str:
    """A list of issues (docs.gitlab.com, "Code Quality", custom tools)."""
    issues = [
        {
            "description": visible(_sentence(item)),
            "check_name": item.finding.code,
            "fingerprint": item.fingerprint,
            "severity": _SEVERITY[item.finding.effort] if item.finding.effort else "minor",
            "location": {
                "path": visible(item.finding.path),
                "lines": {"begin": item.finding.span.line, "end": item.finding.span.end_line},
            },
        }
        for item in result.new
    ]
    return json.dumps(issues, indent=1) + "\n"


def render_junit(result: CheckResult) -> str:
    """One test case a finding, all of them failed; a single one that passed when nothing is left."""
    by_path = grouped((visible(item.finding.path), item) for item in result.new)
    count = len(result.new)
    lines = ['<?xml version="1.0" encoding="utf-8"?>']
    lines.append(f'<testsuites name="transplt" tests="{max(count, 1)}" failures="{count}" errors="0">')
    if not by_path:
        lines.append('  <testsuite name="transplt" tests="1" failures="0" errors="0">')
        lines += ['    <testcase name="no findings" classname="transplt"/>', "  </testsuite>"]
    for path, items in by_path.items():
        many = len(items)
        lines.append(f'  <testsuite name={quoteattr(path)} tests="{many}" failures="{many}" errors="0">')
        for item in items:
            span = item.finding.span
            name = quoteattr(f"{item.finding.code}:{span.line}:{span.column}")
            message = quoteattr(visible(item.finding.text))
            place = escape(f"{path}:{span.line}:{span.column}: {visible(_sentence(item))}")
            lines.append(f'    <testcase name={name} classname={quoteattr(path)} line="{span.line}">')
            lines.append(f"      <failure message={message}>{place}</failure>")
            lines.append("    </testcase>")
        lines.append("  </testsuite>")
    lines.append("</testsuites>")
    return "\n".join(lines) + "\n"
