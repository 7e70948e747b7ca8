"""The result of a run in the page of the migration."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from tests.forked import transplt_run
from transplt.base.disk.manifest import edited_since, read_manifest
from transplt.base.render.proofs import Seen, proofs
from transplt.proof import run_section
from transplt.proof.run_section import add_proof, add_run


@pytest.fixture
def migrated(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text("import torch\nx = torch.ones(2).cuda()\n")
    command = [sys.executable, "-m", "transplt", "-i", str(project), "-o", str(tmp_path), "-q", "--exit-zero"]
    subprocess.run(command, check=True)
    return tmp_path / "project_msft"


def page(folder: Path) -> str:
    return (folder / "report.html").read_text("utf-8")


def test_a_run_is_put_into_the_page_once(migrated: Path) -> None:
    assert "Run on the emulated NPU" not in page(migrated)
    assert add_run(migrated, "stops", "a.py:1: <i>bad</i>", "line 1: <b>bad</b>")
    assert add_run(migrated, "runs", "it <ended> well", "all is well")
    text = page(migrated)
    assert text.count("Run on the emulated NPU") == 2  # in the contents, and over the section
    assert text.count('href="#run"') == text.count('id="run"') == 1
    assert "<strong>runs</strong>: it &lt;ended&gt; well</p>" in text and "<strong>stops" not in text


STUCK = """import torch
import torch.nn as nn


def main():
    y = nn.parallel.data_parallel(nn.Linear(4, 2).cuda(), x)
    print(
        torch.cuda.get_arch_list(), torch.cuda.nccl.version())
"""


@pytest.fixture
def stuck(tmp_path: Path) -> Path:
    """A migration that leaves three actions: NCCL's version, DataParallel and the architectures of CUDA."""
    (tmp_path / "stuck").mkdir()
    (tmp_path / "stuck/train.py").write_text(STUCK)
    command = [sys.executable, "-m", "transplt", "-i", str(tmp_path / "stuck"), "-o", str(tmp_path), "-q"]
    subprocess.run([*command, "--exit-zero"], check=True)
    return tmp_path / "stuck_msft"


def test_a_run_shows_the_actions_of_the_lines_that_it_speaks_of(stuck: Path) -> None:
    manifest = read_manifest(stuck)
    assert manifest is not None
    assert [row["lines"] for row in manifest["actions"]] == [
        {"train.py": [[9, 9]]}, {"train.py": [[9, 9]]}, {"train.py": [[7, 7]]},
    ]  # fmt: skip
    seen = [
        Seen("train.py", 7, "NPU507 torch.nn.DataParallel over 8 devices"),
        Seen("train.py", 9, "NPU501 torch.cuda.get_arch_list"),
        Seen("train.py", 8, "of no action"),
        Seen("other.py", 7, "of no action"),
    ]
    assert [(number, lines) for number, _, lines in proofs(manifest, seen)] == [
        (2, ["train.py:9: NPU501 torch.cuda.get_arch_list"]),
        (3, ["train.py:7: NPU507 torch.nn.DataParallel over 8 devices"]),
    ]
    assert [number for number, _, _ in proofs(manifest, [Seen("train.py", 9, "stopped by TypeError")])] == [1, 2]
    assert add_run(stuck, "runs", "sentence", "text", seen)
    assert '<a href="#action-3">3. Replace DataParallel, which' in page(stuck) and 'id="action-3"' in page(stuck)
    assert "3. Replace DataParallel, which" in page(stuck) and "train.py:7: NPU507" in page(stuck)
    odd = Seen("train.py", 7, "<b>\udcff\x1b")
    assert add_run(stuck, "runs", "sentence", "text", [odd]) and "&lt;b&gt;\\xff\\x1b" in page(stuck)


@pytest.mark.parametrize("actions", [None, 3, [3], [{}], [{"lines": 3}], [{"lines": {"a.py": [3, [1], ["a", "b"]]}}]])
def test_a_manifest_with_something_else_shows_nothing(actions: object) -> None:
    assert proofs({"actions": actions}, [Seen("a.py", 1, "x")]) == []


def test_what_a_script_prints_is_no_markup(migrated: Path) -> None:
    assert add_run(migrated, "runs", "sentence", "<script>alert(1)</script>")
    assert "<script>alert(1)" not in page(migrated)


def test_a_run_and_a_proof_stand_beside_one_another(migrated: Path) -> None:
    assert add_run(migrated, "runs", "it ended", "of the run")
    assert add_proof(migrated, "stops", "early", "of a proof")
    assert add_proof(migrated, "equal", "<12> steps", "of the proof")
    text = page(migrated)
    assert "<strong>runs</strong>: it ended</p>" in text
    assert "<strong>equal</strong>: &lt;12&gt; steps</p>" in text and "of a proof" not in text
    assert text.count("Compared with the original") == text.count("Run on the emulated NPU") == 2
    manifest = read_manifest(migrated)
    assert manifest is not None
    assert edited_since(migrated, manifest) == []


def test_the_page_still_counts_as_written_by_transplt(migrated: Path) -> None:
    assert add_run(migrated, "runs", "fine", "all")
    manifest = read_manifest(migrated)
    assert manifest is not None
    assert edited_since(migrated, manifest) == []


def test_a_page_that_was_edited_stays(migrated: Path) -> None:
    (migrated / "report.html").write_text(page(migrated) + "<!-- mine -->")
    before = page(migrated)
    assert not add_run(migrated, "runs", "fine", "all")
    assert page(migrated) == before


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_a_folder_that_may_not_be_written(migrated: Path, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, data: bytes) -> None:
        raise OSError(number, "no")

    monkeypatch.setattr(run_section, "replace_file", refuse)
    if number == errno.ENOSPC:
        with pytest.raises(OSError, match="no"):
            add_run(migrated, "runs", "it ended well", "")
    else:
        assert not add_run(migrated, "runs", "it ended well", "")


def test_a_folder_without_a_page(tmp_path: Path) -> None:
    assert not add_run(tmp_path, "runs", "fine", "all")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.torch
def test_transplt_run_adds_itself(migrated: Path) -> None:
    code, _, errors = transplt_run(["--report", str(migrated.parent / "run.json"), "train.py"], migrated)
    assert code == 0, errors
    assert "Verdict: <strong>runs</strong>: finished without errors" in page(migrated)
