"""A run that is ended leaves nothing behind; what one leaves that is killed, the next one names and removes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import transplt.base.disk.leftovers
from tests.processes import unmeasured
from transplt import migrate_tree
from transplt.base.disk.leftovers import MARK, held, remove_leftovers
from transplt.base.disk.replace import remove_unfinished
from transplt.base.errors import UsageError
from transplt.project.report.summary import summary

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and locks")

ROOT = Path(__file__).resolve().parent.parent
#: A run that stops at one place and says so.
WAITING = """
import sys, time
import {module} as place
def half_written():
    try:
        yield
    finally:
        raise ValueError("as a workbook does whose file is closed")
def wait(*_, **__):
    stream = half_written()
    next(stream)
    print("there", flush=True)
    time.sleep(60)
place.{name} = wait
from transplt.faces.cli.main import entry_point
sys.exit(entry_point())
"""
WRITING = WAITING.format(module="transplt.project.tree", name="write_reports")
PUBLISHING = WAITING.format(module="transplt.base.disk.publish", name="finished")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "proj"
    folder.mkdir()
    (folder / "a.py").write_text('import torch\nx = torch.zeros(1, device="cuda")\n')
    return folder


@contextlib.contextmanager
def started(source: Path, code: str, *arguments: str, ignored: bool = False) -> Iterator[subprocess.Popen[str]]:
    """A run of `source` that has come to its place."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_PROCESS")}
    hangup = signal.SIG_IGN if ignored else signal.SIG_DFL  # whatever the tests themselves were started with
    process = subprocess.Popen(
        [sys.executable, "-c", code, "-i", str(source), "-o", str(source.parent / "out"), *arguments],
        env={**environment, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, hangup),  # type: ignore[arg-type,return-value]
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == "there\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def killed(source: Path, code: str, *arguments: str) -> list[str]:
    """The names beside the output after SIGKILL."""
    with started(source, code, *arguments) as process:
        process.send_signal(signal.SIGKILL)
        process.wait(30)
    return sorted(os.listdir(source.parent / "out"))


def notes(source: Path, **options: object) -> tuple[str, ...]:
    return migrate_tree(source, source.parent / "out", **options).notes  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("jobs", ["0", "2"])
def test_a_signal_leaves_nothing(source: Path, number: signal.Signals, jobs: str) -> None:
    with started(source, WRITING, "--jobs", jobs) as process:
        assert [name[:-8] for name in os.listdir(source.parent / "out")] == [".proj_msft."]
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err.strip() == "interrupted; no partial output is left"
    assert not (source.parent / "out").exists()


def test_a_run_under_nohup_goes_on(source: Path) -> None:
    with started(source, WRITING, ignored=True) as process:
        process.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)


def test_a_leftover_of_a_killed_run_is_named_and_removed(source: Path) -> None:
    (left,) = killed(source, WRITING)
    result = migrate_tree(source, source.parent / "out")
    (note,) = result.notes
    assert note.startswith(f"removed {source.parent / 'out' / left}, left over from a run that was killed (process ")
    assert f"  {note}" in list(summary(result))
    assert os.listdir(source.parent / "out") == ["proj_msft"]
    assert not (result.output / MARK).exists()
    assert notes(source, force=True) == ()


def test_a_run_that_is_refused_names_it_too(source: Path) -> None:
    migrate_tree(source, source.parent / "out")
    left = killed(source, WRITING, "--force")[0]
    with pytest.raises(UsageError, match=rf"exists; --force .*; removed .*{left}, left over"):
        migrate_tree(source, source.parent / "out")
    assert os.listdir(source.parent / "out") == ["proj_msft"]


def test_what_a_living_run_writes_stays(source: Path) -> None:
    with started(source, WRITING) as process:
        (at,) = os.listdir(source.parent / "out")
        assert notes(source) == ()
        assert sorted(os.listdir(source.parent / "out")) == [at, "proj_msft"]
        assert process.poll() is None


def test_an_output_that_was_moved_aside_is_put_back(source: Path) -> None:
    """Killed between the two renames: neither output is at its place."""
    output = migrate_tree(source, source.parent / "out").output
    aside = output.parent / ".proj_msft.old.abcd_123"
    aside.mkdir()
    with held(aside):
        output.rename(aside / output.name)
    (first, second) = remove_leftovers(output)
    assert first == f"put back {output}, which a killed run had moved aside"
    assert second.startswith(f"removed {aside}, left over")
    assert os.listdir(output.parent) == ["proj_msft"]


def test_an_output_that_was_replaced_goes(source: Path) -> None:
    migrate_tree(source, source.parent / "out")
    (source / "a.py").write_text("x = 1\n")
    old, new = killed(source, PUBLISHING, "--force")
    assert (old[:-8], new) == (".proj_msft.old.", "proj_msft")
    assert len(notes(source, force=True)) == 1
    assert os.listdir(source.parent / "out") == ["proj_msft"]
    assert (source.parent / "out/proj_msft/a.py").read_text() == "x = 1\n"


def leftover(folder: Path, mark: object = None) -> Path:
    """A folder as a killed run leaves it."""
    folder.mkdir(parents=True)
    with held(folder):
        pass
    if mark is not None:
        (folder / MARK).write_text(json.dumps(mark))
    return folder


@pytest.mark.parametrize(
    "name",
    [
        ".proj_msft.abcdefg",  # not as long as ours
        ".proj_msft.abcdefgH",
        ".proj_msft2.abcdefgh",
        "proj_msft.abcdefgh",
        ".proj_msft.new.abcdefgh",
        ".projXmsft.abcdefgh",
    ],
)
def test_a_folder_of_another_name_stays(tmp_path: Path, name: str) -> None:
    leftover(tmp_path / name)
    assert remove_leftovers(tmp_path / "proj_msft") == []
    assert (tmp_path / name).is_dir()


@pytest.mark.parametrize("mark", [{}, [], 1, {"tool": "other", "pid": 1}, {"tool": "transplt", "pid": "1"}])
def test_a_folder_without_our_mark_stays(tmp_path: Path, mark: object) -> None:
    leftover(tmp_path / ".proj_msft.abcdefgh", mark)
    (tmp_path / ".proj_msft.bbbbbbbb").mkdir()
    (tmp_path / ".proj_msft.cccccccc").write_text("a file")
    assert remove_leftovers(tmp_path / "proj_msft") == []
    assert len(os.listdir(tmp_path)) == 3


def test_links_stay(tmp_path: Path) -> None:
    other = leftover(tmp_path / "other")
    (tmp_path / ".proj_msft.aaaaaaaa").symlink_to(other)
    linked = tmp_path / ".proj_msft.bbbbbbbb"
    linked.mkdir()
    (linked / ".transplt").symlink_to(other / ".transplt")
    (tmp_path / ".proj_msft.cccccccc/.transplt").mkdir(parents=True)
    (tmp_path / ".proj_msft.cccccccc" / MARK).symlink_to(other / MARK)
    assert remove_leftovers(tmp_path / "proj_msft") == []
    assert len(os.listdir(tmp_path)) == 4


def test_what_a_leftover_links_to_stays(tmp_path: Path) -> None:
    left = leftover(tmp_path / ".proj_msft.abcdefgh")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/file").write_text("x")
    (left / "link").symlink_to(tmp_path / "mine")
    (left / "deep").mkdir(mode=0o500)
    assert len(remove_leftovers(tmp_path / "proj_msft")) == 1
    assert os.listdir(tmp_path) == ["mine"] and os.listdir(tmp_path / "mine") == ["file"]


def test_a_leftover_of_another_machine_is_only_named(tmp_path: Path) -> None:
    mark = {"tool": "transplt", "pid": 1, "locked": True, "host": "elsewhere", "boot": "another"}
    left = leftover(tmp_path / ".proj_msft.abcdefgh", mark)
    said = f"{left} is left over, unless a run on another machine still writes it: remove it by hand"
    assert remove_leftovers(tmp_path / "proj_msft") == [said]
    leftover(tmp_path / ".proj_msft.bbbbbbbb", {**mark, "locked": False, **transplt.base.disk.leftovers._machine()})
    assert len(remove_leftovers(tmp_path / "proj_msft")) == 2
    assert len(os.listdir(tmp_path)) == 2


def test_a_machine_that_was_started_again(tmp_path: Path) -> None:
    host = os.uname().nodename
    leftover(
        tmp_path / ".proj_msft.abcdefgh",
        {"tool": "transplt", "pid": 1, "locked": True, "host": host, "boot": "earlier"},
    )
    assert len(remove_leftovers(tmp_path / "proj_msft")) == 1
    assert os.listdir(tmp_path) == []


def test_a_folder_of_somebody_else_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leftover(tmp_path / ".proj_msft.abcdefgh")
    uid = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
    assert remove_leftovers(tmp_path / "proj_msft") == []
    assert remove_leftovers(tmp_path / "no" / "proj_msft") == []


# --- files that were being replaced ----------------------------------------------------------------------------------

FIXING = """
import os, sys, time
def wait(*_, **__):
    print("there", flush=True)
    time.sleep(60)
os.replace = wait
from transplt.faces.cli.main import entry_point
sys.exit(entry_point())
"""


def fixed(file: Path, *code: str) -> subprocess.Popen[str]:
    command = [sys.executable, *(code or ("-m", "transplt")), "check", "--fix", "--style", "npu", str(file)]
    return subprocess.Popen(
        command, env=unmeasured() | {"PYTHONPATH": str(ROOT)}, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def test_a_file_that_a_killed_fix_wrote_is_removed_by_the_next(source: Path) -> None:
    file = source / "a.py"
    before = file.read_text()
    with fixed(file, "-c", FIXING) as process:
        assert process.stdout is not None and process.stdout.readline() == "there\n"
        process.kill()
    (left,) = set(os.listdir(source)) - {"a.py"}
    assert file.read_text() == before
    with fixed(file) as process:
        _, err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert f"removed {source / left}, left over from a run that was killed\n" in err
    assert os.listdir(source) == ["a.py"]


@pytest.mark.parametrize(
    "name",
    [
        ".a.py.abcdefg.transplt",
        ".a.py.abcdefgH.transplt",
        ".b.py.abcdefgh.transplt",
        ".a.py.abcdefgh",
        "a.py.abcdefgh.transplt",
    ],
)
def test_a_file_of_another_name_stays(source: Path, name: str) -> None:
    (source / name).write_text("mine")
    assert list(remove_unfinished([source / "a.py"])) == []
    assert (source / name).read_text() == "mine"


def test_what_is_no_file_or_is_held_stays(source: Path) -> None:
    import fcntl

    os.mkfifo(source / ".a.py.aaaaaaaa.transplt")
    (source / ".a.py.bbbbbbbb.transplt").symlink_to(source / "a.py")
    (source / ".a.py.cccccccc.transplt").mkdir()
    with open(source / ".a.py.dddddddd.transplt", "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert list(remove_unfinished([source / "a.py"])) == []
    assert len(os.listdir(source)) == 5
    assert len(list(remove_unfinished([source / "a.py", source / "a.py"]))) == 1


@pytest.mark.parametrize("name", ["x" * 250, "\u4e2d" * 83])
def test_names_as_long_as_the_system_takes(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    (folder / "a.py").write_text("x = 1\n")
    for force in (False, True):
        migrate_tree(folder, tmp_path / "out", force=force)
        assert os.listdir(tmp_path / "out") == [f"{name}_msft"]


def test_a_name_that_leaves_no_room_for_the_output(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 251)
    folder.mkdir()
    (folder / "a.py").write_text("x = 1\n")
    with pytest.raises(UsageError, match="x_msft would have too long a name; give the input a shorter one"):
        migrate_tree(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()
