"""`.transplt/manifest.json` as it is written; transplt/base/disk/manifest.py reads it."""

from __future__ import annotations

import json
from typing import Any

import transplt
from transplt.base.disk.manifest import FORMAT
from transplt.engine.actions.actions import actions_of
from transplt.engine.edited_lines import output_line
from transplt.project.report.migration_record import RunResult


def manifest_text(result: RunResult, reports: dict[str, str]) -> str:
    """The manifest as JSON: no times, no absolute paths. `reports` maps a report's path to its sha256.

    A file name that is not UTF-8 is written with lone surrogates, as JSON escapes.
    """
    settings = result.settings
    fixers, codemods = (
        [dict(zip(("name", "distribution", "version"), each, strict=False)) for each in every]
        for every in (settings.fixers, settings.codemods)
    )
    # The level of each program under apex where none was asked for, at its amp.initialize, and why.
    levels = [
        {"path": each.path, "line": each.span.line, "level": each.detail("level"), "why": each.message}
        for each in (result.apex_levels if settings.amp == "apex" else ())
    ]
    table = {
        "tool": "transplt",
        "format": FORMAT,
        "version": transplt.__version__,
        "name": result.name,
        "torch": result.target.version,
        "torch_npu": result.target.torch_npu,
        "style": settings.style,
        "options": {
            "specify_device": settings.specify_device,
            "similar": settings.similar,
            "unsafe_fixes": settings.unsafe_fixes,
            "annotate": settings.annotate,
            "annotate_edits": settings.annotate_edits,
            "texts": settings.texts,
            "docs": settings.docs,
            **({"amp": settings.amp, "opt_level": settings.opt_level} if settings.amp == "apex" else {}),
        },
        **({"apex_levels": levels} if settings.amp == "apex" else {}),
        **({"fixers": fixers} if fixers else {}),
        **({"codemods": codemods} if codemods else {}),
        "files": {
            record.path: {"sha256": record.sha256, "edited_lines": list(record.edited_lines)}
            if record.edited_lines
            else {"sha256": record.sha256}
            for record in result.files
        },
        **({"helpers": [record.path for record in result.helpers]} if result.helpers else {}),
        **({"kept": list(result.kept)} if result.kept else {}),
        "links": list(result.links),
        "reports": reports,
        "left_out": [item.path for item in result.large],
        "actions": _actions(result),
        "portable": result.portable,
    }
    return json.dumps(table, indent=1) + "\n"


def _actions(result: RunResult) -> list[dict[str, Any]]:
    """What is left to do, in its order, with the lines of the output that a run can show it at: [first, last].

    Parts of an action have its number.
    """
    by_path = {record.path: record.findings for record in result.python_files}
    rows = []
    numbered = [
        (number, part)
        for number, action in enumerate(actions_of(result.findings, result.settings.style), 1)
        for part in action.parts or (action,)
    ]
    for number, action in numbered:
        lines: dict[str, list[list[int]]] = {}
        for finding in action.findings:
            if finding.path in by_path:
                first = output_line(finding.span.line, by_path[finding.path])
                lines.setdefault(finding.path, []).append([first, first + finding.span.end_line - finding.span.line])
        apis = sorted({finding.api for finding in action.findings if finding.path in by_path} - {""})
        rows.append({"number": number, "title": action.title, "apis": apis, "lines": lines})
    return rows
