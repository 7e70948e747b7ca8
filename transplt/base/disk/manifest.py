"""`.transplt/manifest.json`, read: what transplt wrote into an output folder, so that it can be replaced with care."""

from __future__ import annotations

import contextlib
import json
import os
import posixpath
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from transplt.base.disk.mirror import hash_file
from transplt.base.text.regular_file import RECORDS, read_regular

#: Relative to the output folder.
MANIFEST = ".transplt/manifest.json"
LEFT_OUT = ".transplt/left_out"
#: The reports at the top of an output folder.
CHANGE_LIST = "change_list.csv"
TOKENS = "tokens.csv"
UNSUPPORTED = "unsupported_op.xlsx"
LOG = "msFmkTranspltlog.txt"
PAGE = "report.html"
#: The folder for the pages of single files.
PAGES = "report_files"
FORMAT = 1
#: What running the migrated project leaves behind is no edit.
_BY_PRODUCTS = ("__pycache__", ".transplt")


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of an output folder, None when `folder` is not one that transplt wrote."""
    path = folder / MANIFEST
    try:
        table = json.loads(read_regular(path, RECORDS))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(table, dict) or table.get("tool") != "transplt" or table.get("format") != FORMAT:
        return None
    files, reports = table.get("files"), table.get("reports")
    if not isinstance(files, dict) or not isinstance(reports, dict):
        return None
    if not all(isinstance(item, dict) and isinstance(item.get("sha256"), str) for item in files.values()):
        return None
    lists = [list(reports.values()), *(table.get(name, []) for name in ("links", "left_out", "helpers", "kept"))]
    if not all(isinstance(each, list) and all(isinstance(item, str) for item in each) for each in lists):
        return None
    return table


def reports_of(folder: Path, manifest: dict[str, Any] | None) -> frozenset[str]:
    """The paths in `folder` that hold what an earlier migration reported, and nothing else: files and folders."""
    if manifest is None:
        return frozenset()
    reports = frozenset(manifest["reports"])
    found = set(reports)
    for path in {posixpath.dirname(path) for path in reports} - {""}:
        with contextlib.suppress(OSError):
            if all(f"{path}/{name}" in reports for name in os.listdir(folder / path)):
                found.add(path)
    return frozenset(found)


def edited_since(folder: Path, manifest: dict[str, Any]) -> list[str]:
    """Paths that transplt wrote into `folder` and that were changed since, sorted."""
    hashes, links = _written(manifest)
    return sorted(
        path
        for path in _paths(folder, "")
        if (path in hashes or path in links) and not _as_written(folder / path, hashes.get(path))
    )


def added_since(folder: Path, manifest: dict[str, Any]) -> list[str]:
    """Paths in `folder` that transplt did not write, sorted: results of a training, data, files of the user."""
    hashes, links = _written(manifest)
    known = {*hashes, *links, *manifest.get("kept", [])}
    return sorted(path for path in _paths(folder, "") if path not in known)


def _written(manifest: dict[str, Any]) -> tuple[dict[str, str], set[str]]:
    """The hashes of the files that transplt wrote, by path, and its links."""
    hashes = {path: item["sha256"] for path, item in manifest["files"].items()} | manifest["reports"]
    return hashes, set(manifest.get("links", []))


def _as_written(path: Path, digest: str | None) -> bool:
    """Whether a file has this hash; a link is as it was where there is none."""
    if path.is_symlink() or digest is None:
        return path.is_symlink() and digest is None
    try:
        return hash_file(str(path)) == digest
    except OSError:
        return False


def _paths(folder: Path, path: str) -> Iterator[str]:
    with os.scandir(folder / path) as entries:
        for entry in entries:
            below = f"{path}/{entry.name}" if path else entry.name
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in _BY_PRODUCTS:
                    yield from _paths(folder, below)
            elif not entry.name.endswith(".pyc"):
                yield below
