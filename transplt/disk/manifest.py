"""`.transplt/manifest.json`: what transplt wrote into an output folder, so that it can be replaced with care."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import transplt
from transplt.base.text.regular_file import RECORDS, read_regular
from transplt.disk.mirror import hash_file
from transplt.engine.actions.actions import actions_of
from transplt.engine.edited_lines import output_line
from transplt.report.records import RunResult

#: Relative to the output folder.
MANIFEST = ".transplt/manifest.json"
LEFT_OUT = ".transplt/left_out"
_FORMAT = 1
#: What running the migrated project leaves behind is no edit.
_BY_PRODUCTS = ("__pycache__", ".transplt")


def manifest_text(result: RunResult, reports: dict[str, str]) -> str:
    """The manifest as JSON: no times, no absolute paths. `reports` maps a report's path to its sha256.

    A file name that is not UTF-8 is written with lone surrogates, as JSON escapes.
    """
    settings = result.settings
    fixers = [dict(zip(("name", "distribution", "version"), each, strict=False)) for each in settings.fixers]
    table = {
        "tool": "transplt",
        "format": _FORMAT,
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
            "texts": settings.texts,
            "docs": settings.docs,
            **({"amp": settings.amp, "opt_level": settings.opt_level} if settings.amp == "apex" else {}),
        },
        **({"apex_levels": _levels(result)} if settings.amp == "apex" else {}),
        **({"fixers": fixers} if fixers else {}),
        "files": {
            record.path: {"sha256": record.sha256, "edited_lines": list(record.edited_lines)}
            if record.edited_lines
            else {"sha256": record.sha256}
            for record in result.files
        },
        "links": list(result.links),
        "reports": reports,
        "left_out": [item.path for item in result.large],
        "actions": _actions(result),
    }
    return json.dumps(table, indent=1) + "\n"


def _levels(result: RunResult) -> list[dict[str, Any]]:
    """The level of each program under apex where none was asked for, at its amp.initialize, and why."""
    rows = []
    for finding in result.apex_levels:
        level = next(level for level in ("O1", "O2") if finding.message.startswith(f"level {level}"))
        rows.append({"path": finding.path, "line": finding.span.line, "level": level, "why": finding.message})
    return rows


def _actions(result: RunResult) -> list[dict[str, Any]]:
    """What is left to do, in its order, with the lines of the output that a run can show it at: [first, last]."""
    by_path = {record.path: record.findings for record in result.python_files}
    rows = []
    for action in actions_of(result.findings):
        lines: dict[str, list[list[int]]] = {}
        for finding in action.findings:
            if finding.path in by_path:
                first = output_line(finding.span.line, by_path[finding.path])
                lines.setdefault(finding.path, []).append([first, first + finding.span.end_line - finding.span.line])
        apis = sorted({finding.api for finding in action.findings if finding.path in by_path} - {""})
        rows.append({"title": action.title, "apis": apis, "lines": lines})
    return rows


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of an output folder, None when `folder` is not one that transplt wrote."""
    path = folder / MANIFEST
    try:
        table = json.loads(read_regular(path, RECORDS))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(table, dict) or table.get("tool") != "transplt" or table.get("format") != _FORMAT:
        return None
    files, reports = table.get("files"), table.get("reports")
    if not isinstance(files, dict) or not isinstance(reports, dict):
        return None
    if not all(isinstance(item, dict) and isinstance(item.get("sha256"), str) for item in files.values()):
        return None
    lists = [list(reports.values()), table.get("links", []), table.get("left_out", [])]
    if not all(isinstance(each, list) and all(isinstance(item, str) for item in each) for each in lists):
        return None
    return table


def edited_since(folder: Path, manifest: dict[str, Any]) -> list[str]:
    """Paths that were changed or added in `folder` after transplt wrote it, sorted."""
    hashes = {path: item["sha256"] for path, item in manifest["files"].items()} | manifest["reports"]
    links = set(manifest.get("links", []))
    brought = set(manifest.get("left_out", []))
    edited = []
    for path in _paths(folder, ""):
        full = folder / path
        if full.is_symlink():
            known = path in links
        elif path in hashes:
            try:
                known = hash_file(str(full)) == hashes[path]
            except OSError:
                known = False
        else:
            known = path in brought
        if not known:
            edited.append(path)
    return sorted(edited)


def _paths(folder: Path, path: str) -> Iterator[str]:
    with os.scandir(folder / path) as entries:
        for entry in entries:
            below = f"{path}/{entry.name}" if path else entry.name
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in _BY_PRODUCTS:
                    yield from _paths(folder, below)
            elif not entry.name.endswith(".pyc"):
                yield below
