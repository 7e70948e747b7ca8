"""`transplt check --watch`: the same check again whenever a file that it looks at changes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from transplt.base.errors import UsageError
from transplt.faces.cli.main import main
from transplt.project.checking.watching import each_change
from transplt.project.options import Options


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    monkeypatch.setattr("transplt.project.checking.watching.time.sleep", lambda seconds: None)


def write(path: Path, text: str, at: int) -> None:
    path.write_text(text)
    os.utime(path, (at, at))


def looks(folder: Path) -> Iterator[int]:
    return each_change([folder], Options(source=folder))


def test_it_begins_at_once_and_tells_changes(tmp_path: Path) -> None:
    write(tmp_path / "a.py", "x = 1\n", 1)
    found = looks(tmp_path)
    assert next(found) == 1
    write(tmp_path / "b.py", "y = 1\n", 1)
    assert next(found) == 2
    write(tmp_path / "a.py", "x = 2\n", 2)
    assert next(found) == 2
    (tmp_path / "b.py").unlink()
    assert next(found) == 1


def test_settings_are_read_anew_and_may_be_broken_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "a.py", "x = 1\n", 1)
    found = looks(tmp_path)
    next(found)
    write(tmp_path / "pyproject.toml", "[tool.transplt\n", 1)
    after = iter(["[tool.transplt\n", '[tool.transplt]\nexclude = ["b.py"]\n'])
    monkeypatch.setattr(
        "transplt.project.checking.watching.time.sleep",
        lambda seconds: write(tmp_path / "pyproject.toml", next(after), 2),
    )
    assert next(found) == 2  # the second look, after the settings were mended


def test_the_cache_in_the_project_is_no_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write(tmp_path / "a.py", "x = 1\n", 1)
    found, kept = looks(tmp_path), tmp_path / "cache/transplt/0.json"
    assert next(found) == 1
    kept.parent.mkdir(parents=True)
    kept.write_text("{}")
    times = iter([lambda: None, lambda: write(tmp_path / "b.py", "y = 1\n", 1)])
    monkeypatch.setattr("transplt.project.checking.watching.time.sleep", lambda seconds: next(times)())
    assert next(found) == 2  # the third look: the cache alone was no change


def test_where_it_prints_to_is_no_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a.py", "x = 1\n", 1)
    with (tmp_path / "log.txt").open("w") as log:
        monkeypatch.setattr(sys, "__stdout__", log)
        assert next(looks(tmp_path)) == 1
    monkeypatch.setattr(sys, "__stdout__", None)
    assert next(looks(tmp_path)) == 2


def test_an_event_ends_the_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "watchfiles")
    pytest.importorskip("watchfiles")
    write(tmp_path / "a.py", "x = 1\n", 1)
    (tmp_path / "pkg").mkdir()
    write(tmp_path / "pkg" / "b.py", "y = 1\n", 1)
    found = looks(tmp_path)
    assert next(found) == 2
    later = threading.Timer(0.5, write, (tmp_path / "pkg" / "c.py", "z = 1\n", 1))
    later.start()
    assert next(found) == 3


def test_the_command_goes_on_until_it_is_interrupted(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch\ntorch.cuda.init()\n")
    command = [sys.executable, "-m", "transplt", "check", str(tmp_path), "--watch", "--format", "concise"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as child:
        assert child.stdout is not None
        said = ""
        while "watching 1 file" not in said and (line := child.stdout.readline()):
            said += line
        assert "a.py:2:1: NPU" in said and re.search(r"^\d\d:\d\d:\d\d watching 1 file;", said, re.M)
        child.send_signal(signal.SIGINT)
        assert child.wait() == 130


@pytest.mark.parametrize("more", [["--diff"], ["--output-file", "x"], ["-"]])
def test_what_it_does_not_go_with(more: list[str], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--watch"):
        main.main(["check", "--watch", *more], standalone_mode=False)
