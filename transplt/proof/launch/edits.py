"""The lines a migration edited, and the statements they belong to: what the report holds against the lines that ran."""

from __future__ import annotations

import ast
import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from transplt.base.disk.manifest import CHANGE_LIST, read_manifest
from transplt.base.text.regular_file import RECORDS, SOURCE, read_regular


@dataclass(frozen=True)
class EditedFile:
    """`statements` maps an edited line (1-based, of the migrated file) to the lines of which one must run; edited lines
    outside any statement (comments, docstrings) are left out."""

    path: Path
    statements: dict[int, frozenset[int]]
    source: tuple[str, ...]

    @property
    def watched(self) -> list[int]:
        return sorted({line for lines in self.statements.values() for line in lines})


@dataclass(frozen=True)
class Migration:
    """A migrated folder: its root, the target version and the style it records (or ""), its edited Python files."""

    root: Path
    torch_version: str
    files: tuple[EditedFile, ...]
    style: str = ""


def find_migration(start: Path) -> Migration | None:
    """The migrated folder that holds `start`, None when no folder above it records a migration."""
    for folder in (start.resolve(), *start.resolve().parents):
        manifest = read_manifest(folder)
        if manifest is not None:
            version, style = str(manifest.get("torch", "")), str(manifest.get("style", ""))
            edited = {
                name: {line for line in found if isinstance(line, int)} if isinstance(found, list) else set()
                for name, entry in manifest["files"].items()
                for found in [entry.get("edited_lines", ())]
            }
        else:
            try:
                text = read_regular(folder / CHANGE_LIST, RECORDS).decode("utf-8-sig", "replace")
            except OSError:
                continue
            version, style, edited = "", "", _from_change_list(text)
        files = [_edited_file(folder / name, lines) for name, lines in sorted(edited.items()) if name.endswith(".py")]
        return Migration(folder, version, tuple(f for f in files if f is not None), style)
    return None


def _from_change_list(text: str) -> dict[str, set[int]]:
    """Output lines computed from the input lines of the change list: each earlier edit shifts by the lines it adds."""
    rows: dict[str, list[tuple[int, int, int]]] = {}
    try:
        table = list(csv.DictReader(io.StringIO(text, newline="")))
    except csv.Error:  # a cell of more than 128 kB, or a null byte
        return {}
    for row in table:
        try:
            start = int(row["Start Line"])
        except (KeyError, TypeError, ValueError):
            continue
        operation = (row.get("Operation Type") or "").upper()
        before, after = (len((row.get(name) or "").splitlines()) for name in ("Before", "After"))
        if operation == "INSERT":
            before, after = 0, max(1, after)
        elif operation == "DELETE":
            before, after = max(1, before), 0
        rows.setdefault(row.get("File") or "", []).append((start, before, after))
    edited: dict[str, set[int]] = {}
    for name, entries in rows.items():
        shift = 0
        for start, before, after in sorted(entries):
            if after:
                edited.setdefault(name, set()).update(range(start + shift, start + shift + after))
            shift += after - before if before != after else 0
    return edited


def _edited_file(path: Path, lines: Iterable[int]) -> EditedFile | None:
    try:
        data = read_regular(path, SOURCE)
        tree = ast.parse(data)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    spans = _statement_spans(tree)
    statements = {}
    for line in sorted(lines):
        holding = [(last - first, first, last) for first, last in spans if first <= line <= last]
        if holding:
            _, first, last = min(holding)
            statements[line] = frozenset(range(first, last + 1))
    source = data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return EditedFile(path, statements, tuple(source)) if statements else None


def _statement_spans(tree: ast.AST) -> list[tuple[int, int]]:
    """(first, last) line of every simple statement, of every compound statement's header and of every decorator."""
    spans: list[tuple[int, int]] = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            spans.extend((d.lineno, d.end_lineno or d.lineno) for d in node.decorator_list)
        text = node.value if isinstance(node, ast.Expr) else None
        if not isinstance(node, ast.stmt) or (isinstance(text, ast.Constant) and isinstance(text.value, str)):
            continue  # a docstring
        body = getattr(node, "body", None) or getattr(node, "cases", None)
        last = node.end_lineno or node.lineno
        if body:
            first_inner = min(_first_line(inner) for inner in body)
            last = max(node.lineno, min(last, first_inner - 1))
        spans.append((node.lineno, last))
    return spans


def _first_line(node: ast.AST) -> int:
    if isinstance(node, ast.match_case):
        return int(node.pattern.lineno)
    lines: list[int] = [d.lineno for d in getattr(node, "decorator_list", ())]
    return min([*lines, int(getattr(node, "lineno", 1))])
