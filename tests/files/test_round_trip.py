"""Files of real projects and mutants: bytes without an edit stay, records give the output, a second run is still.

`TRANSPLT_EXAMPLES` names a folder of projects.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.files.shell_pairs import TARGET
from tests.fuzz.mutations import PIECES
from transplt.base.settings import Settings
from transplt.engine.engine import index_source, join_facts
from transplt.engine.files.kind import FileKind, kind_of
from transplt.engine.files.other_file import migrate_other
from transplt.flow.facts import ProjectFacts

EXAMPLES = os.environ.get("TRANSPLT_EXAMPLES", "")
PROJECTS = sorted(path for path in Path(EXAMPLES).iterdir() if path.is_dir()) if EXAMPLES else []
KINDS = [kind for kind in FileKind if kind not in (FileKind.PYTHON, FileKind.BINARY)]
SETTINGS = Settings(torch_version="2.8", docs=True)
#: Every finding switched off, and so every edit.
SILENT = Settings(torch_version="2.8", docs=True, per_file_ignores=(("*", ("NPU",)),))
MUTANTS = 2000

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not EXAMPLES, reason="TRANSPLT_EXAMPLES names no folder of projects"),
]


def files(root: Path) -> Iterator[tuple[str, bytes, FileKind]]:
    for path in sorted(root.rglob("*")):
        if not path.is_file() or path.is_symlink() or ".git" in path.parts or path.suffix == ".py":
            continue
        data = path.read_bytes() if path.stat().st_size < 1_000_000 else b"\0"
        name = path.relative_to(root).as_posix()
        if (kind := kind_of(name, data)) in KINDS:
            yield name, data, kind


def facts(root: Path) -> ProjectFacts:
    modules = [path for path in sorted(root.rglob("*.py")) if path.is_file() and not path.is_symlink()]
    told = (index_source(path.read_bytes(), path.relative_to(root).as_posix(), SETTINGS) for path in modules)
    return join_facts(told, SETTINGS)


def hold(data: bytes, name: str, kind: FileKind, project: ProjectFacts) -> None:
    assert migrate_other(data, name, kind, SILENT, TARGET, project)[0].data == data, name
    result, _ = migrate_other(data, name, kind, SETTINGS, TARGET, project)
    assert result.changed == (result.data != data)
    bom = b"\xef\xbb\xbf" if data.startswith(b"\xef\xbb\xbf") else b""
    new, end = data[len(bom) :], len(data)
    # What goes in at one place stands in the output in the order of the records.
    for each in sorted(result.findings, key=lambda item: (item.span.start, item.span.end))[::-1]:
        if each.applied and each.edit is not None:
            assert each.span.end <= end, f"{name}: edits overlap"
            new = new[: each.span.start] + each.edit.after.encode() + new[each.span.end :]
            end = each.span.start
    assert bom + new == result.data, name
    again, _ = migrate_other(result.data, name, kind, SETTINGS, TARGET, project)
    assert again.data == result.data, name


@pytest.mark.parametrize("root", PROJECTS, ids=lambda path: path.name)
def test_what_is_not_edited_stays(root: Path) -> None:
    project = facts(root)
    for name, data, kind in files(root):
        hold(data, name, kind, project)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.value)
def test_mutants(kind: FileKind) -> None:
    """Of the files that name CUDA, as many as there are, broken in one to three places."""
    chance = random.Random(kind.value)
    seeds = [
        (name, data)
        for root in PROJECTS
        for name, data, found in files(root)
        if found is kind and len(data) < 60_000 and (b"cuda" in data or b"nccl" in data or b"torch" in data)
    ]
    for _ in range(MUTANTS if seeds else 0):
        name, data = chance.choice(seeds)
        for _ in range(chance.randint(1, 3)):
            data = _broken(chance, data)
        if kind_of(name, data) is kind:
            hold(data, name, kind, ProjectFacts(known=True))


def _broken(chance: random.Random, data: bytes) -> bytes:
    at, length = chance.randint(0, len(data)), chance.randint(1, 60)
    match chance.randrange(4):
        case 0:
            return data[:at] + chance.choice(PIECES) + data[at:]
        case 1:
            return data[:at] + data[at + length :]
        case 2:
            return data[:at]
    start = chance.randint(0, len(data))
    return data[:at] + data[start : start + length] + data[at:]
