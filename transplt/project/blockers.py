"""What of a project stops in some versions of torch, and not in others: asked where no file decides for a version.

Counted is what is certain: names that the torch_npu of a version lacks (rules with `versions`), and calls that torch
refuses from a version on (rules/support/refused_calls.json), each once for a project. Verdicts of the documentation are
not: it names operators as unsupported with which programs train. A file is parsed only where it spells one of them.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path

from transplt.base.disk.walk import SKIPPED_FOLDERS
from transplt.base.settings import TORCH_VERSIONS
from transplt.base.text.regular_file import REQUIREMENTS, read_regular
from transplt.base.text.source import UnreadableSource
from transplt.rules.tables import read_table, rules_dir
from transplt.rules.versions import in_order
from transplt.syntax.files import File

#: Files that are looked at; a larger project is judged by these.
_MOST_FILES = 4000


def blockers(root: Path) -> dict[str, tuple[str, ...]]:
    """What stops, in words, with the versions in which it does, for the Python files of the project at `root`."""
    found: dict[str, tuple[str, ...]] = {}
    for path in islice(_python_files(root), _MOST_FILES):
        try:
            data = read_regular(path, REQUIREMENTS, follow=False)
        except OSError:
            continue
        if _may_stop(data):
            found.update(_in_file(data))
    return found


def _python_files(root: Path) -> Iterator[str]:
    if root.is_file():
        yield str(root)
        return
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(set(folders) - SKIPPED_FOLDERS)
        yield from (os.path.join(folder, name) for name in sorted(names) if name.endswith(".py"))


@cache
def _lacking() -> dict[str, tuple[str, ...]]:
    """Names that the torch_npu of some versions lacks, with these versions."""
    found: dict[str, tuple[str, ...]] = {}
    for path in sorted(rules_dir().glob("*.json")):
        rules = read_table(path.name).get("rules", {}) if path.name != "schema.json" else {}
        for rule in rules.get("UnsupportedRule", ()):
            if "versions" in rule and rule["name"].startswith("torch."):
                found[rule["name"]] = in_order(rule["versions"])
    return found


@cache
def _refused() -> tuple[dict[str, str], ...]:
    """Rows of calls that the torch of some version with a torch_npu refuses, and not of every one."""
    rows = read_table("support/refused_calls.json")["calls"]
    return tuple(row for row in rows if row.get("since") in TORCH_VERSIONS[1:] and row.get("weighs", True))


@cache
def _spellings() -> tuple[tuple[bytes, re.Pattern[bytes]], ...]:
    """How a file spells a name that some version lacks: behind the last part of its owner, or as what is imported. With
    each that last part, which is looked for first: that is faster by far than the expression."""
    every = []
    for name in _lacking():
        *_, owner, last = name.split(".")
        spelled = rf"\b{re.escape(owner)}\.{re.escape(last)}\b|import[ \t][^\n]*\b{re.escape(last)}\b"
        every.append((last.encode(), re.compile(spelled.encode())))
    return tuple(every)


def _may_stop(data: bytes) -> bool:
    """False for a file that is not worth parsing."""
    if b"torch" not in data:
        return False
    return any(last in data and spelled.search(data) is not None for last, spelled in _spellings()) or any(
        ("index" in row or row.get("keyword", "").encode() in data) and row["name"].rpartition(".")[2].encode() in data
        for row in _refused()
    )


def _in_file(data: bytes) -> dict[str, tuple[str, ...]]:
    from transplt.fixers.codemods.refused_calls import calls_of_a_base, refusals

    try:
        file = File.of("", data)
    except UnreadableSource:
        return {}
    found: dict[str, tuple[str, ...]] = {}
    nodes: list[ast.expr] = [node for group in (file.scan.names, file.scan.attributes) for each in group.values()
                             for node in each]  # fmt: skip
    for node in nodes:
        name = file.names.qualified(node)
        if name in _lacking():
            found[f"{name} is missing"] = _lacking()[name]
    called = [(file.names.qualified(call.func), call) for call in file.scan.calls]
    called += [each for owner in file.scan.classes for each in calls_of_a_base(file.names, owner)]
    for name, call in called:
        for row in refusals(name, call, file.scan):
            if row in _refused():
                found[row["message"]] = TORCH_VERSIONS[TORCH_VERSIONS.index(row["since"]) :]
    return found
