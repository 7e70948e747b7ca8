"""Packages that the project imports and that work on NPU: from which version on, and what to know.

Packages that are bound to CUDA are findings of the rules (NPU510 to NPU512); these are info.
"""

from __future__ import annotations

import ast
from functools import cache
from typing import Any

from transplt.base.finding import Level
from transplt.edits.edit import Note
from transplt.engine.analysis.scanned_file import ScannedFile
from transplt.flow.facts import ProjectFacts
from transplt.rules.packages import packages

CODE = "NPU513"
_MESSAGES = {
    "native": "works on NPU",
    "works": "needs no change for NPUs",
    "cpu": "runs on the CPU as before, and does not use the NPU",
}


@cache
def _packages() -> dict[str, Any]:
    return {name: row for row in packages() if row["status"] in _MESSAGES for name in row["import"]}


def notes_of(file: ScannedFile, project: ProjectFacts) -> list[Note]:
    """One finding a package, at its first import in the file; none for what the project has under that name."""
    found: dict[str, Note] = {}
    known = _packages()
    for node in sorted(file.scan.imports, key=lambda each: each.lineno):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level and node.module:
            modules = [node.module]
        for module in modules:
            name = _known_head(module)
            own = module.partition(".")[0] in project.packages
            own = own or project.imports_own(module, file.scan.path, file.source.utf8)
            if name and name not in found and not own:
                found[name] = _note(file, node, name, known[name])
    return list(found.values())


@cache
def _known_head(module: str) -> str:
    """The package that a module is or belongs to, by the longest name that is known; empty for another's."""
    parts = module.split(".")
    heads = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((head for head in heads if head in _packages()), "")


def _note(file: ScannedFile, node: ast.Import | ast.ImportFrom, name: str, row: dict[str, Any]) -> Note:
    since = f" since {row['since']}" if row.get("since") else ""
    confidence = row.get("confidence", "low")
    probably = "probably " if confidence == "low" else ""
    message = f"the package {name} {probably}{_MESSAGES[row['status']]}{since}"
    help_text = "; ".join(part for part in (row.get("note", ""), f"confidence: {confidence}") if part)
    return Note(file.extent(node), CODE, Level.INFO, message, name, help_text)
