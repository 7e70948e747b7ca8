"""`check --since REF`: changed lines only."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.checking.conftest import Call, commit_all, git
from tests.checking.test_git_command import hostile  # noqa: F401
from transplt.base.disk.git_changes import _hunks

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="shell scripts")
OLD = "import torch\nx = torch.ones(1).cuda()\n"


@pytest.fixture
def repo(project: Path) -> Path:
    (project / "train.py").write_text(OLD)
    (project / "old.py").write_text(OLD)
    commit_all(project)
    return project


def codes(out: str) -> list[str]:
    lines = [line for line in out.splitlines() if ": NPU" in line and "NPU403" not in line]
    return [f"{line.split(':')[0]}:{line.split(':')[1]}" for line in lines]


def since(call: Call, *more: str, ref: str = "HEAD") -> tuple[int, list[str]]:
    code, out, _ = call("check", "--since", ref, "--format", "concise", "-q", *more)
    return code, codes(out)


def test_nothing_changed(repo: Path, call: Call) -> None:
    assert since(call) == (0, [])


def test_a_changed_line(repo: Path, call: Call) -> None:
    (repo / "train.py").write_text(OLD + "y = x.cuda()\n")
    code, found = since(call)
    assert code == 1 and "train.py:3" in found and "train.py:2" not in found and "old.py:2" not in found


def test_new_and_renamed_and_deleted_files(repo: Path, call: Call) -> None:
    (repo / "new.py").write_text(OLD)
    git(repo, "mv", "old.py", "moved.py")
    (repo / "train.py").unlink()
    assert since(call)[1].count("new.py:2") == 1 and not [each for each in since(call)[1] if "moved" in each]
    (repo / "moved.py").write_text(OLD + "y = x.cuda()\n")
    git(repo, "add", "-A")
    found = since(call)[1]
    assert "moved.py:3" in found and "moved.py:2" not in found


def test_what_others_did_meanwhile_is_not_ours(repo: Path, call: Call) -> None:
    git(repo, "branch", "other")
    git(repo, "checkout", "-q", "other")
    (repo / "old.py").write_text("import torch\n")
    commit_all(repo)
    git(repo, "checkout", "-q", "-")
    assert since(call, ref="other") == (0, [])


def test_files_that_are_not_python(repo: Path, call: Call) -> None:
    (repo / "run.sh").write_text("export CUDA_VISIBLE_DEVICES=0\n")
    commit_all(repo)
    (repo / "run.sh").write_text("export CUDA_VISIBLE_DEVICES=0\nexport CUDA_LAUNCH_BLOCKING=1\n")
    assert "run.sh:1" not in since(call)[1]


def test_from_a_folder_below(repo: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    below = repo / "pkg"
    below.mkdir()
    (below / "a.py").write_text(OLD)
    monkeypatch.chdir(below)
    assert since(call)[1] == ["a.py:2"]


def test_fix_changes_only_these_lines(repo: Path, call: Call) -> None:
    (repo / "train.py").write_text(OLD + "y = x.cuda()\n")
    call("check", "--since", "HEAD", "--fix", "--style", "npu", "--allow-dirty", "-q")
    text = (repo / "train.py").read_text()
    assert text == "import torch\nimport torch_npu  # noqa: F401\nx = torch.ones(1).cuda()\ny = x.npu()\n"
    assert (repo / "old.py").read_text() == OLD


def test_a_renamed_import_is_all_or_nothing(repo: Path, call: Call) -> None:
    source = "from torch import cuda\n\ncuda.synchronize()\n"
    (repo / "train.py").write_text(source)
    commit_all(repo)
    (repo / "train.py").write_text(source + "cuda.empty_cache()\n")
    call("check", "--since", "HEAD", "--fix", "--style", "npu", "--allow-dirty", "-q")
    text = (repo / "train.py").read_text()
    assert text == source + "cuda.empty_cache()\n"


@pytest.mark.parametrize("ref", ["nowhere", "--output=x", "HEAD:train.py", ""])
def test_a_commit_that_is_none(repo: Path, call: Call, ref: str) -> None:
    code, _, err = call("check", f"--since={ref}")
    assert code == 2 and "git does not know this commit" in err and not (repo / "x").exists()


def test_a_shallow_clone_says_so(repo: Path, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(2):
        (repo / "old.py").write_text(OLD + f"# {number}\n")
        commit_all(repo)
    git(repo, "branch", "other", "HEAD~2")
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", "--depth", "1", "--no-single-branch", repo.as_uri(), str(clone)], check=True)
    monkeypatch.chdir(clone)
    code, _, err = call("check", "--since", "origin/other")
    assert code == 2 and "shallow" in err and "fetch-depth: 0" in err


def test_outside_of_git_and_standard_input(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.py").write_text(OLD)
    monkeypatch.chdir(tmp_path)
    code, _, err = call("check", "--since", "HEAD", "a.py")
    assert code == 2 and "is not in a git repository" in err
    code, _, err = call("check", "--since", "HEAD", "-")
    assert code == 2 and "standard input" not in err and "--since cannot be combined" in err


def test_nothing_of_a_hostile_repository_runs(hostile: tuple[Path, Path], call: Call) -> None:  # noqa: F811
    project, marker = hostile
    (project / ".gitattributes").write_text("*.py filter=Evil.x diff=evil -text binary\n")
    git(project, "config", "diff.evil.command", str(marker.parent / "evil"))
    git(project, "config", "diff.noprefix", "true")
    (project / "train.py").write_text((project / "train.py").read_text() + "y = x.cuda()\n")
    code, found = since(call)
    assert code == 1 and found and not marker.exists()


def test_lines_that_look_like_a_patch() -> None:
    patch = b"""diff --git a/a.py b/a.py
--- a/a.py
+++ b/a.py
@@ -1,2 +1,3 @@ def f
-++ b/b.py
-x
+++ b/c.py
+@@ -1 +1 @@
+y
@@ -9,0 +11 @@
+z
@@ -20,2 +21,0 @@
-p
-q
diff --git "a/\\303\\244 b.py" "b/\\303\\244 b.py"
--- "a/\\303\\244 b.py"
+++ "b/\\303\\244 b.py"
@@ -1 +1 @@
-x
+y
\\ No newline at end of file
"""
    assert _hunks(patch) == {"a.py": ((1, 3), (11, 11)), "ä b.py": ((1, 1),)}
