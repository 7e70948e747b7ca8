"""Scripts and documents of real projects: bytes without an edit stay, records give the output, a second run is still.

`TRANSPLT_EXAMPLES` names a folder of projects (`.ci/run --full` fetches one).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.files.shell_pairs import TARGET
from transplt.apply.engine import index_source, join_facts
from transplt.files.kind import FileKind, kind_of
from transplt.files.other_file import migrate_other
from transplt.project.facts import ProjectFacts
from transplt.settings import Settings

EXAMPLES = os.environ.get("TRANSPLT_EXAMPLES", "")
PROJECTS = sorted(path for path in Path(EXAMPLES).iterdir() if path.is_dir()) if EXAMPLES else []
KINDS = (FileKind.SHELL, FileKind.PROSE)
SETTINGS = Settings(torch_version="2.8", docs=True)


def files(root: Path) -> Iterator[tuple[str, bytes, FileKind]]:
    for path in sorted(root.rglob("*")):
        if path.is_file() and not path.is_symlink() and ".git" not in path.parts and path.suffix != ".py":
            data = path.read_bytes()
            name = path.relative_to(root).as_posix()
            if len(data) < 1_000_000 and (kind := kind_of(name, data)) in KINDS:
                yield name, data, kind


def facts(root: Path) -> ProjectFacts:
    modules = [path for path in sorted(root.rglob("*.py")) if path.is_file() and not path.is_symlink()]
    told = (index_source(path.read_bytes(), path.relative_to(root).as_posix(), SETTINGS) for path in modules)
    return join_facts(told, SETTINGS)


@pytest.mark.slow
@pytest.mark.skipif(not EXAMPLES, reason="TRANSPLT_EXAMPLES names no folder of projects")
@pytest.mark.parametrize("root", PROJECTS, ids=lambda path: path.name)
def test_what_is_not_edited_stays(root: Path) -> None:
    project = facts(root)
    for name, data, kind in files(root):
        result, _ = migrate_other(data, name, kind, SETTINGS, TARGET, project)
        assert result.changed == (result.data != data)
        bom = b"\xef\xbb\xbf" if data.startswith(b"\xef\xbb\xbf") else b""
        new = data[len(bom) :]
        for each in sorted(result.findings, key=lambda item: (-item.span.start, -item.span.end)):
            if each.applied and each.edit is not None:
                new = new[: each.span.start] + each.edit.after.encode() + new[each.span.end :]
        assert bom + new == result.data, name
        again, _ = migrate_other(result.data, name, kind, SETTINGS, TARGET, project)
        assert again.data == result.data, name
        assert not any(each.code == "NPU992" for each in result.findings), name
