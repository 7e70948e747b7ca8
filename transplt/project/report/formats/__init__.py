"""The findings of a check in the formats that people, editors and CI systems read."""

from __future__ import annotations

import importlib

from transplt.project.report.check_results import CheckResult

#: Format -> module of this package and function in it; a module is imported when its format is asked for.
FORMATS = {
    "text": "findings_text:render_text",
    "concise": "findings_text:render_concise",
    "json": "json_document:render_json",
    "json-lines": "json_document:render_json_lines",
    "github": "ci_systems:render_github",
    "gitlab": "ci_systems:render_gitlab",
    "junit": "ci_systems:render_junit",
    "sarif": "sarif:render_sarif",
}

#: The same for how many findings each code has.
STATISTICS = {
    "text": "findings_text:render_statistics",
    "concise": "findings_text:render_statistics",
    "json": "json_document:render_statistics_json",
    "json-lines": "json_document:render_statistics_json_lines",
}


def render(
    result: CheckResult, name: str, *, color: bool = False, verbose: bool = False, counts: bool = False
) -> str:
    """The findings in one format; `color` and `verbose` (also what is only worth knowing) matter to text alone.

    With `counts` how many each code has, in one of the formats of STATISTICS.
    """
    module, _, function = (STATISTICS if counts else FORMATS)[name].partition(":")
    renderer = getattr(importlib.import_module(f"transplt.project.report.formats.{module}"), function)
    text: str = renderer(result, color, verbose) if module == "findings_text" else renderer(result)
    return text
