"""The edited lines of a migration and the statements they belong to."""

from __future__ import annotations

import json
import os
from pathlib import Path

from transplt.proof.launch.edits import find_migration

SOURCE = '''\
"""Docstring about
cuda."""
import torch
import torch_npu

# a comment
@decorator(
    "npu"
)
def f(
    device="npu",
):
    """Doc."""
    if (device ==
            "npu"):
        return 1
    x = torch.zeros(2,
                    device="npu")
    match x:
        case "npu": pass
    return x
'''


def manifest(folder: Path, edited: dict[str, list[int]], torch: str = "2.7") -> None:
    (folder / ".transplt").mkdir()
    files = {name: {"sha256": "", **({"edited_lines": lines} if lines else {})} for name, lines in edited.items()}
    (folder / ".transplt" / "manifest.json").write_text(
        json.dumps({"tool": "transplt", "format": 1, "torch": torch, "files": files, "reports": {}}), encoding="utf-8"
    )


def test_edited_lines_belong_to_statements(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(SOURCE, encoding="utf-8")
    (tmp_path / "broken.py").write_text("def (\n", encoding="utf-8")
    edited = [2, 4, 6, 8, 11, 15, 16, 18, 19, 20]
    manifest(tmp_path, {"a.py": edited, "broken.py": [1], "gone.py": [1], "run.sh": [1], "plain.py": []})
    (tmp_path / "deep" / "er").mkdir(parents=True)
    migration = find_migration(tmp_path / "deep" / "er")
    assert migration is not None and migration.root == tmp_path.resolve() and migration.torch_version == "2.7"
    [file] = migration.files
    spans = {line: (min(span), max(span)) for line, span in file.statements.items()}
    assert spans == {
        4: (4, 4), 8: (7, 9), 11: (10, 12), 15: (14, 15),
        16: (16, 16), 18: (17, 18), 19: (19, 19), 20: (20, 20),
    }  # fmt: skip
    assert file.watched == [4, 7, 8, 9, 10, 11, 12, 14, 15, 16, 17, 18, 19, 20]


def test_without_a_manifest_the_change_list_serves(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch\nimport torch_npu\n\nx = torch.zeros(2).npu()\n", encoding="utf-8")
    rows = [
        "File,Start Line,End Line,Operation Type,Message,Column,Code,Before,After",
        "a.py,2,2,INSERT,m,1,NPU403,,import torch_npu",
        "a.py,3,3,MODIFY,m,1,NPU210,x.cuda(),x.npu()",
        "a.py,x,,MODIFY,m,1,NPU210,,",
    ]
    (tmp_path / "change_list.csv").write_text("\ufeff" + "\n".join(rows) + "\n", encoding="utf-8")
    migration = find_migration(tmp_path)
    assert migration is not None and migration.torch_version == ""
    assert [sorted(file.statements) for file in migration.files] == [[2, 4]]


def test_no_migration(tmp_path: Path) -> None:
    assert find_migration(tmp_path) is None


def test_what_is_no_record_of_ours_is_none(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    manifest(tmp_path, {"a.py": ["1", None]})  # type: ignore[list-item]
    migration = find_migration(tmp_path)
    assert migration is not None and migration.files == ()
    (tmp_path / ".transplt/manifest.json").write_text("{")
    assert find_migration(tmp_path) is None
    (tmp_path / ".transplt/manifest.json").unlink()
    os.mkfifo(tmp_path / ".transplt/manifest.json")
    os.mkfifo(tmp_path / "change_list.csv")
    assert find_migration(tmp_path) is None
