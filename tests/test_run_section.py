"""The result of a run in the page of the migration."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from transplt.disk.manifest import edited_since, read_manifest
from transplt.report.run_section import add_run


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
    assert add_run(migrated, "script-failed", "line 1: <b>bad</b>")
    assert add_run(migrated, "verified", "all is well")
    text = page(migrated)
    assert text.count("Run on the emulated NPU") == 1
    assert "verified" in text and "script-failed" not in text


def test_what_a_script_prints_is_no_markup(migrated: Path) -> None:
    assert add_run(migrated, "findings", "<script>alert(1)</script>")
    assert "<script>alert(1)" not in page(migrated)


def test_the_page_still_counts_as_written_by_transplt(migrated: Path) -> None:
    assert add_run(migrated, "verified", "fine")
    manifest = read_manifest(migrated)
    assert manifest is not None
    assert edited_since(migrated, manifest) == []


def test_a_page_that_was_edited_stays(migrated: Path) -> None:
    (migrated / "report.html").write_text(page(migrated) + "<!-- mine -->")
    before = page(migrated)
    assert not add_run(migrated, "verified", "fine")
    assert page(migrated) == before


def test_a_folder_without_a_page(tmp_path: Path) -> None:
    assert not add_run(tmp_path, "verified", "fine")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.torch
def test_transplt_run_adds_itself(migrated: Path) -> None:
    command = [sys.executable, "-m", "transplt", "run", "--report", str(migrated.parent / "run.json"), "train.py"]
    here = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    subprocess.run(command, check=True, cwd=migrated, capture_output=True, env=here)
    assert "Verdict: <strong>verified</strong>" in page(migrated)
