"""The programs of a proof: what is found, what is copied for a run, and what is refused."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from transplt.proof.launch.options import UsageError
from transplt.proof.prove import projects
from transplt.proof.prove.projects import Project, find_project


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project with two scripts and a folder of data."""
    root = tmp_path / "net"
    (root / "data" / "images").mkdir(parents=True)
    (root / "data" / "images" / "a.bin").write_bytes(b"0123456789")
    (root / "tools").mkdir()
    for name in ("main.py", "tools/train.py"):
        (root / name).write_text("import torch\n")
    return root


def copied(project: Project, tmp_path: Path) -> list[str]:
    """The files and links of a copy."""
    root = project.copy_to(tmp_path / "copy")
    assert root == tmp_path / "copy" / project.root.name
    found = [Path(where, name) for where, _, names in os.walk(root) for name in names]
    links = [Path(where, name) for where, names, _ in os.walk(root) for name in names if Path(where, name).is_symlink()]
    return sorted(path.relative_to(root).as_posix() for path in [*found, *links])


@pytest.mark.parametrize(
    ("given", "main", "found"),
    [
        ("", "", "main.py"),
        ("", "tools/train.py", "tools/train.py"),
        ("", "./tools/../tools/train.py", "tools/train.py"),
        ("main.py", "", "main.py"),
        ("main.py", "tools/train.py", "main.py"),
    ],
)
def test_the_script_of_a_folder(given: str, main: str, found: str, folder: Path) -> None:
    assert find_project(folder / given, main, ()) == Project(folder, found)


def test_a_script_in_a_folder_below_is_a_project_of_its_own(folder: Path) -> None:
    assert find_project(folder / "tools" / "train.py", "", ()) == Project(folder / "tools", "train.py")


@pytest.mark.parametrize(
    ("main", "data", "told"),
    [
        ("train.py", (), "there is no script train.py in {}."),
        ("data", (), "there is no script data in {}."),
        ("../net/main.py", (), "--main ../net/main.py: name a path in {}, relative to it."),
        ("/etc/hosts", (), "--main /etc/hosts: name a path in {}, relative to it."),
        ("main.py", ("..",), "--data ..: name a path in {}, relative to it."),
        ("main.py", (".",), "--data .: name a path in {}, relative to it."),
        ("main.py", ("/tmp",), "--data /tmp: name a path in {}, relative to it."),
        ("main.py", ("data/../../other",), "--data data/../../other: name a path in {}, relative to it."),
    ],
)
def test_what_is_no_path_of_the_project(main: str, data: tuple[str, ...], told: str, folder: Path) -> None:
    with pytest.raises(UsageError) as raised:
        find_project(folder, main, data)
    assert str(raised.value) == told.format(folder)


def test_a_folder_without_main_py_says_which_option_names_the_script(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^there is no script main\.py in .*; name the script with --main\.$"):
        find_project(tmp_path, "", ())


def test_a_project_that_is_too_large(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projects, "LIMIT", 35)
    with pytest.raises(UsageError, match=r"holds over 0 MB, .* name folders of data in it with --data"):
        find_project(folder, "", ())
    assert find_project(folder, "", ("data",)).data == ("data",)
    (folder / ".git").mkdir()
    (folder / ".git" / "pack").write_bytes(b"0" * 100)
    assert find_project(folder, "", ("data/images",)).data == ("data/images",)


def test_data_behind_a_link_counts(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sets").mkdir()
    (tmp_path / "sets" / "b.bin").write_bytes(b"0" * 100)
    (folder / "sets").symlink_to(tmp_path / "sets")
    monkeypatch.setattr(projects, "LIMIT", 100)
    with pytest.raises(UsageError, match="--data"):
        find_project(folder, "", ())
    assert find_project(folder, "", ("sets",)).data == ("sets",)


def test_a_copy_has_the_files_and_no_caches(folder: Path, tmp_path: Path) -> None:
    for name in (".git", "__pycache__", "venv", "net.egg-info"):
        (folder / name).mkdir()
        (folder / name / "x").write_text("x")
    assert copied(find_project(folder, "", ()), tmp_path) == ["data/images/a.bin", "main.py", "tools/train.py"]


@pytest.mark.parametrize(
    ("data", "link"), [("data", "data"), ("./data/", "data"), ("data/images", "data/images"), ("none", "")]
)
def test_data_are_linked(data: str, link: str, folder: Path, tmp_path: Path) -> None:
    project = find_project(folder, "", (data,))
    names = copied(project, tmp_path)
    assert names == sorted([link or "data/images/a.bin", "main.py", "tools/train.py"])
    if link:
        assert (tmp_path / "copy" / "net" / link).resolve() == folder / link
    assert (tmp_path / "copy" / "net" / "data" / "images" / "a.bin").read_bytes() == b"0123456789"


def test_what_is_no_file_stays_behind(folder: Path, tmp_path: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "nowhere").symlink_to(folder / "gone")
    assert copied(find_project(folder, "", ()), tmp_path) == ["data/images/a.bin", "main.py", "tools/train.py"]


def test_folders_that_lead_in_a_circle_are_copied_once(folder: Path, tmp_path: Path) -> None:
    (folder / "here").symlink_to(".")
    (folder / "data" / "tools").symlink_to("../tools")
    (folder / "tools" / "data").symlink_to("../data")
    names = copied(find_project(folder, "", ()), tmp_path)
    assert names == [
        "data/images/a.bin", "data/tools/train.py", "main.py", "tools/data/images/a.bin", "tools/train.py",
    ]  # fmt: skip


def test_a_file_that_cannot_be_read(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*given: object, **more: object) -> None:
        raise shutil.Error([(str(folder / "main.py"), "copy", "[Errno 13] Permission denied")])

    monkeypatch.setattr(shutil, "copytree", refused)
    with pytest.raises(UsageError, match=r"main\.py cannot be copied: \[Errno 13\] Permission denied\.$"):
        find_project(folder, "", ()).copy_to(tmp_path / "copy")
