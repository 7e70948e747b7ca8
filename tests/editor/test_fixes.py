"""What an editor offers for a finding, and what a text is in its project; without a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from transplt.faces.lsp.fixes import applied, fix_all, fixes_of
from transplt.faces.lsp.open_project import MOST_FILES, OpenProject, encoded
from transplt.project.options import Options


def opened(folder: Path, name: str = "train.py") -> OpenProject:
    project = OpenProject.around(folder / name, Options())
    project.refresh()
    return project


def test_the_files_of_the_project_count(tmp_path: Path) -> None:
    """`where` is a device because another file says what it is called with."""
    (tmp_path / "pyproject.toml").write_text("")
    text = "from place import put\n\nx = put(1, 'cuda')\n"
    alone = opened(tmp_path).findings(tmp_path / "train.py", text)
    (tmp_path / "place.py").write_text("import torch\n\n\ndef put(x, where):\n    return torch.tensor(x).to(where)\n")
    known = opened(tmp_path).findings(tmp_path / "train.py", text)
    assert "NPU201" in [each.code for each in known] and "NPU201" not in [each.code for each in alone]


def test_a_file_that_changed_is_read_again_and_others_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("import torch\ndevice = 'cuda'\n")
    project = opened(tmp_path)
    from transplt.project.worker import FileWorker

    read: list[str] = []
    index = FileWorker.index
    monkeypatch.setattr(FileWorker, "index", lambda self, entry: (read.append(entry.path), index(self, entry))[1])
    project.refresh()
    (tmp_path / "b.py").write_text("import torch\ndevice = 'cuda:0'\n")
    project.refresh()
    assert read == ["b.py"]


def test_a_folder_that_is_no_project_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("import torch\n")
    project = opened(tmp_path)
    assert project.project.every is None and MOST_FILES > 1000
    assert [each.code for each in project.findings(tmp_path / "train.py", "import torch\ntorch.cuda.init()\n")]


def test_what_the_settings_leave_out_has_no_findings(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.transplt]\nexclude = ['old/']\n")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "train.py").write_text("")
    project = opened(tmp_path)
    assert project.findings(tmp_path / "old" / "train.py", "import torch\ntorch.cuda.init()\n") == ()


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_all_safe_edits_are_what_a_migration_makes(newline: str, tmp_path: Path) -> None:
    from transplt import migrate_source

    text = newline.join(["# \u00e9\U0001f600", "import torch", "x = torch.zeros(2).cuda()", "torch.cuda.init()", ""])
    findings = opened(tmp_path).findings(tmp_path / "train.py", text)
    fix = fix_all(text, "train.py", findings)
    assert fix is not None and applied(text, fix.edits).encode() == migrate_source(text.encode(), "train.py").data


@pytest.mark.parametrize(
    ("text", "line", "after"),
    [
        ("import apex\n", 1, "import apex  # transplt: ignore[NPU511]\n"),
        ("import apex  # why\n", 1, "import apex  # why  # transplt: ignore[NPU511]\n"),
        ("import apex  # transplt: ignore[NPU101]\n", 1, "import apex  # transplt: ignore[NPU101, NPU511]\n"),
        ("import apex  \r\n", 1, "import apex  # transplt: ignore[NPU511]\r\n"),
        ("import \\\n    apex\n", 2, "import \\\n    apex  # transplt: ignore[NPU511]\n"),
        ("import apex, \\\n    torch\n", 1, None),  # behind a backslash there is no comment
    ],
)
def test_a_comment_that_ignores(text: str, line: int, after: str | None, tmp_path: Path) -> None:
    project = opened(tmp_path)
    findings = project.findings(tmp_path / "train.py", text)
    finding = next(each for each in findings if each.code == "NPU511" and each.span.line == line)
    offered = [fix for fix in fixes_of(text, "train.py", finding, findings) if fix.title.startswith("Ignore")]
    assert [applied(text, fix.edits) for fix in offered] == ([] if after is None else [after])
    if after is not None:
        left = project.findings(tmp_path / "train.py", after)
        assert "NPU511" not in [each.code for each in left if each.open]


def test_a_text_is_encoded_as_it_declares() -> None:
    assert encoded("# coding: latin-1\n# \u00e9\n").endswith(b"\xe9\n")
    assert encoded("# coding: ascii\n# \u00e9\n").endswith("\u00e9\n".encode())
    assert encoded("# coding: nonsense\n") == b"# coding: nonsense\n"
