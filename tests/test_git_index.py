"""git's index is read as git writes it, and never trusted."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transplt.base.disk.git_index import find_repository, parse_index, read_tracked

NAMES = ["a.py", "data/x.yaml", "data/deep/er/y.yaml", "data/deep/z", "\u00fc.txt", "l" * 200]


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-c", "init.defaultBranch=main", *arguments], cwd=folder, check=True, capture_output=True)


def repository(tmp_path: Path, *init: str) -> Path:
    for name in NAMES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "data" / "untracked").write_text("x")
    git(tmp_path, "init", *init)
    git(tmp_path, "add", "-f", *NAMES)
    return tmp_path


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_all_versions(tmp_path: Path, version: str) -> None:
    folder = repository(tmp_path)
    if version == "3":
        (folder / "later").write_text("x")
        git(folder, "add", "--intent-to-add", "later")
    else:
        git(folder, "update-index", "--index-version", version)
    assert (folder / ".git" / "index").read_bytes()[7] == int(version)
    tracked = read_tracked(folder)
    assert tracked is not None
    assert all(tracked.has_file(name) for name in NAMES)
    assert not tracked.has_file("data/untracked")
    assert tracked.has_folder("data/deep/er")
    assert not tracked.has_folder("other")


def test_sha256(tmp_path: Path) -> None:
    tracked = read_tracked(repository(tmp_path, "--object-format=sha256"))
    assert tracked is not None
    assert all(tracked.has_file(name) for name in NAMES)


def test_a_folder_inside_a_repository(tmp_path: Path) -> None:
    folder = repository(tmp_path)
    tracked = read_tracked(folder / "data")
    assert tracked is not None
    assert tracked.has_file("x.yaml")
    assert not tracked.has_file("a.py")
    assert find_repository(folder / "data" / "deep") == folder


def test_a_worktree(tmp_path: Path) -> None:
    folder = repository(tmp_path / "main")
    git(folder, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-m", "x")
    git(folder, "worktree", "add", str(tmp_path / "tree"))
    tracked = read_tracked(tmp_path / "tree")
    assert tracked is not None
    assert tracked.has_file("a.py")


def test_a_split_index_is_not_understood(tmp_path: Path) -> None:
    folder = repository(tmp_path)
    git(folder, "update-index", "--split-index")
    assert read_tracked(folder) is None


def test_a_submodule_counts_as_tracked(tmp_path: Path) -> None:
    inner = repository(tmp_path / "outer" / "inner")
    git(inner, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-m", "x")
    git(tmp_path / "outer", "init")
    git(tmp_path / "outer", "add", "inner")
    tracked = read_tracked(tmp_path / "outer")
    assert tracked is not None
    assert tracked.has_file("inner/anything")
    assert tracked.has_folder("inner")


@pytest.mark.parametrize("content", ["", "nonsense", "gitdir: nowhere\n"])
def test_a_broken_repository_tells_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / ".git").write_text(content)
    assert read_tracked(tmp_path) is None


@given(st.binary(max_size=200), st.booleans())
def test_garbage_is_an_error_and_nothing_else(data: bytes, with_header: bool) -> None:
    import struct

    if with_header:
        data = b"DIRC\0\0\0\2\0\0\0\3" + data
    try:
        parse_index(data)
    except (ValueError, IndexError, struct.error):
        return
    assert not with_header or len(data) > 12 + 3 * 62
