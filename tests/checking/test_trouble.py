"""What goes wrong around a check: files that cannot be read or written, git that does not answer, dead workers."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.checking.conftest import TRAIN, Call, commit_all
from transplt.base.disk.replace import replace_file, write_asked_for
from transplt.base.disk.walk import Entry
from transplt.base.errors import CannotFinish, UsageError
from transplt.base.finding import Status
from transplt.base.settings import TORCH_VERSIONS, Settings
from transplt.project.checking.checked_file import CheckedFile, checked
from transplt.project.checking.in_place import write_changes
from transplt.project.report.check_results import ChangedFile
from transplt.project.torch_version import TorchTarget
from transplt.project.worker import FileWorker, Unread


def test_a_file_that_is_not_text_is_shown_as_far_as_it_can_be(project: Path, call: Call) -> None:
    (project / "bad.py").write_bytes(b"import torch\nx = 'caf\xe9'  # cuda\n")
    code, out, _ = call("check", "bad.py")
    assert code == 1
    assert "bad.py:2:1: NPU902 " in out
    assert "2 | x = 'caf\ufffd'  # cuda" in out


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("unfinished.py", "def f(:\n    model.cuda()\n", "NPU901"),
        ("deep.py", f"x = {'(' * 300}cuda{')' * 300}\n", "NPU90"),
        ("book.ipynb", '{"cells": 1, "cuda": 1}', "NPU830"),
    ],
)
def test_nothing_is_copied_where_files_are_only_looked_at(
    name: str, text: str, code: str, project: Path, call: Call
) -> None:
    (project / name).write_text(text)
    exit_code, out, _ = call("check", name)
    assert exit_code == 1 and f" {code}" in out
    assert "is not changed" in out and "copied" not in out


def test_a_file_that_goes_away(project: Path) -> None:
    worker = FileWorker(str(project), Settings(), TorchTarget(TORCH_VERSIONS[-1], ""), checked)
    gone = Entry("gone.py", 1, 0o644)
    assert worker.finish(gone) == Unread("gone.py", "No such file or directory")
    assert worker.copy(gone, "why") == Unread("gone.py", "No such file or directory")


def test_a_file_on_which_a_worker_died_is_a_finding(project: Path) -> None:
    worker = FileWorker(str(project), Settings(), TorchTarget(TORCH_VERSIONS[-1], ""), checked)
    record = worker.copy(Entry("train.py", 1, 0o644), "the worker ended")
    assert isinstance(record, CheckedFile)
    assert record.status is Status.INTERNAL
    assert [finding.code for finding in record.findings] == ["NPU991"]
    assert record.findings[0].message.startswith("transplt could not process this file and left it unchanged")
    assert record.data is None


def test_large_files_that_no_rule_reads_are_not_read(project: Path) -> None:
    worker = FileWorker(str(project), Settings(), TorchTarget(TORCH_VERSIONS[-1], ""), checked)
    assert worker.finish(Entry("weights.bin", 1 << 30, 0o644)) == CheckedFile("weights.bin")


def test_several_workers_find_the_same(project: Path, call: Call) -> None:
    for number in range(5):
        (project / f"m{number}.py").write_text(TRAIN)
    outputs = {call("check", "--jobs", jobs)[1] for jobs in (0, 1, 3)}
    assert len(outputs) == 1


def test_a_full_disk_leaves_the_file_as_it_was(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    before = sorted(os.listdir(project))
    file = project / "train.py"
    with pytest.raises(CannotFinish, match="No space left on device; it was not changed"):
        write_changes([ChangedFile(file, "train.py", TRAIN.encode(), b"new", 1)])
    assert file.read_text() == TRAIN
    assert sorted(os.listdir(project)) == before


@pytest.mark.skipif(sys.platform == "win32" or os.getuid() != 0, reason="needs root to give a file to somebody else")
def test_the_owner_is_kept(project: Path) -> None:
    file = project / "train.py"
    os.chown(file, 12345, 12345)
    replace_file(file, b"new")
    assert (file.stat().st_uid, file.read_bytes()) == (12345, b"new")


@pytest.mark.parametrize("name", ["x" * 252 + ".py", "\u4e2d" * 84 + ".py"])
def test_a_name_as_long_as_the_system_takes(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_bytes(b"old")
    replace_file(file, b"new")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [(name, b"new")]


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file of this process may become larger, as on a disk that is full."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("before", [b"what was known", None])
def test_a_file_that_an_option_names_is_whole_or_as_it_was(tmp_path: Path, before: bytes | None) -> None:
    file = tmp_path / "page.html"
    if before is not None:
        file.write_bytes(before)
    with room_for(100), pytest.raises(CannotFinish, match=r"cannot write .*page\.html: File too large"):
        write_asked_for(file, b"x" * 1000)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == ([before] if before is not None else [])
    write_asked_for(file, b"new")
    (tmp_path / "like").touch()
    assert file.read_bytes() == b"new" and file.stat().st_mode == (tmp_path / "like").stat().st_mode


def test_a_file_that_an_option_names_is_no_input(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"loss 1")
    (tmp_path / "link").symlink_to("a.log")
    for name in ("a.log", "link"):
        with pytest.raises(UsageError, match=f"{name} is the input; name another file"):
            write_asked_for(tmp_path / name, b"new", [tmp_path / "b.log", tmp_path / "a.log"])
    assert (tmp_path / "a.log").read_bytes() == b"loss 1"


def test_a_file_that_an_option_names_through_a_link_or_as_a_device(tmp_path: Path) -> None:
    file, link = tmp_path / "a", tmp_path / "link"
    file.write_bytes(b"old")
    link.symlink_to(file)
    write_asked_for(link, b"new")
    assert link.is_symlink() and file.read_bytes() == b"new"
    write_asked_for(os.devnull, b"x")
    assert os.path.exists(os.devnull) and not os.path.isfile(os.devnull)
    with pytest.raises(CannotFinish, match=r"cannot write .*: Is a directory"):
        write_asked_for(tmp_path, b"x")


def test_without_git_nothing_is_written(project: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    commit_all(project)
    monkeypatch.setenv("PATH", str(project))
    code, _, err = call("check", "--fix", "--style", "npu")
    assert code == 2
    assert "git cannot say whether" in err and "--allow-dirty" in err
    assert (project / "train.py").read_text() == TRAIN


def test_a_baseline_that_cannot_be_written(project: Path, call: Call) -> None:
    code, _, err = call("check", "--baseline", "no/base.json", "--update-baseline")
    assert code == 3
    assert "cannot write no/base.json" in err
    (project / "folder").mkdir()
    code, _, err = call("check", "--baseline", "folder")
    assert code == 2
    assert "cannot read folder" in err


@pytest.mark.parametrize("paths", [(), ("train.py",)])
def test_a_pattern_that_is_none(paths: tuple[str, ...], project: Path, call: Call) -> None:
    code, _, err = call("check", "--exclude", "!", *paths)
    assert code == 2
    assert "a pattern of --exclude cannot be read" in err


def test_a_defect_in_one_file_does_not_stop_the_others(
    project: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transplt.engine import engine

    real = engine.migrate_source

    def fail(data: bytes, path: str, *rest: object) -> object:
        if path == "train.py":
            raise RuntimeError("a defect")
        return real(data, path, *rest)  # type: ignore[arg-type]

    (project / "other.py").write_text(TRAIN)
    monkeypatch.setattr(engine, "migrate_source", fail)
    code, out, _ = call("check", "--format", "concise", "--jobs", 0)
    assert code == 1
    assert "train.py:1:1: NPU991 transplt could not process this file" in out
    assert "other.py:4:24: NPU201 [*]" in out
