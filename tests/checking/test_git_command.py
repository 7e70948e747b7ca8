"""git is run in one place, on repositories whose configuration may name programs: none of them runs."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.checking.conftest import FIXED, Call, commit_all, git
from transplt.base.disk import git_command
from transplt.base.disk.git_command import status

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="shell scripts")


def program(folder: Path, name: str, marker: Path) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\ntouch '{marker}'\ncat\n")
    path.chmod(0o755)
    return path


def touched(path: Path) -> None:
    """Another time and the same bytes: git has to look into the file."""
    os.utime(path, (1, 1))


@pytest.fixture
def hostile(project: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A clean repository that names a program wherever `git status` might run one; and what that program makes."""
    marker = tmp_path / "ran"
    evil = program(tmp_path, "evil", marker)
    (project / ".gitattributes").write_text("*.py filter=Evil.x diff=evil\n*.md filter=included\n")
    (project / "b.md").write_text("text\n")
    commit_all(project)
    included = tmp_path / "more.cfg"
    included.write_text(f'[filter "included"]\n\tclean = {evil}\n\trequired\n')
    for key, value in {
        "core.fsmonitor": str(evil),
        "core.hooksPath": str(tmp_path),
        "core.pager": str(evil),
        "diff.external": str(evil),
        "diff.evil.textconv": str(evil),
        "filter.Evil.x.clean": str(evil),
        "filter.Evil.x.process": str(evil),
        "filter.Evil.x.required": "true",
        "include.path": str(included),
    }.items():
        git(project, "config", key, value)
    program(tmp_path, "post-index-change", marker)
    touched(project / "train.py")
    touched(project / "b.md")
    return project, marker


def test_the_trap_is_one(hostile: tuple[Path, Path]) -> None:
    project, marker = hostile
    subprocess.run(["git", "-C", project, "-c", "core.fsmonitor=false", "status"], capture_output=True, check=False)
    assert marker.exists()


def test_no_program_of_a_repository_runs(hostile: tuple[Path, Path], call: Call) -> None:
    project, marker = hostile
    assert status(project) == b""
    assert call("check", "--fix", "--style", "npu")[0] == 1
    assert (project / "train.py").read_text() == FIXED
    assert status(project) == b" M train.py\0"
    assert not marker.exists()


def test_no_program_of_a_submodule_runs(project: Path, tmp_path: Path) -> None:
    inner, marker = project / "inner", tmp_path / "ran"
    inner.mkdir()
    (inner / "a.py").write_text("x = 1\n")
    (inner / ".gitattributes").write_text("* filter=evil\n")
    commit_all(inner)
    commit_all(project)
    evil = program(tmp_path, "evil", marker)
    git(inner, "config", "filter.evil.clean", str(evil))
    git(inner, "config", "core.fsmonitor", str(evil))
    touched(inner / "a.py")
    assert status(project) == b""
    assert not marker.exists()


def test_a_filter_of_a_name_that_cannot_be_switched_off(project: Path) -> None:
    commit_all(project)
    git(project, "config", "filter.a=b.clean", "false")
    with pytest.raises(OSError, match=r"odd name: 'filter\.a=b\.clean'"):
        status(project)


def test_a_filter_of_the_user_stays_in_force(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    (home / ".gitconfig").write_text('[filter "mine"]\n\tclean = "sed s/spam/eggs/"\n')
    (project / ".gitattributes").write_text("*.txt filter=mine\n")
    (project / "a.txt").write_text("spam\n")
    git(project, "init", "-q")
    git(project, "-c", "filter.mine.clean=sed s/spam/eggs/", "add", "-A")
    git(project, "commit", "-qm", "x")
    touched(project / "a.txt")
    assert status(project) == b""


def test_a_git_in_the_current_folder_is_not_run(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit_all(project)
    program(project, "git", tmp_path / "ran")
    for path in (f".{os.pathsep}{os.environ['PATH']}", f"{os.pathsep}{os.environ['PATH']}"):
        monkeypatch.setenv("PATH", path)
        assert status(project) == b"?? git\0"
    monkeypatch.setenv("PATH", ".")
    with pytest.raises(FileNotFoundError, match="git is not installed"):
        status(project)
    assert not (tmp_path / "ran").exists()


def test_the_environment_leads_to_no_other_repository(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit_all(project)
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert status(project) == b""
    assert stat.S_ISDIR((project / ".git").stat().st_mode)
    assert "GIT_OPTIONAL_LOCKS" in git_command._ENVIRONMENT
