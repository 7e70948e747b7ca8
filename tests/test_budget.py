"""A file that takes more CPU time or memory than a file may costs itself, and workers end with who started them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.processes import unmeasured
from transplt.base.budget import Budget, parse_budget
from transplt.base.errors import UsageError
from transplt.base.stages import EDITED, words_of
from transplt.project.config import read_config
from transplt.project.own_settings import budget_for

linux = pytest.mark.skipif(sys.platform != "linux", reason="nobody watches elsewhere")
ROOT = Path(__file__).resolve().parent.parent
PROGRAM = "import torch\nx = torch.zeros(1).cuda()\n"
#: transplt with an engine that never comes back from some files.
START = """
import sys, time
from transplt.base import stages
from transplt.faces.cli.main import entry_point
from transplt.engine import engine
real = engine.migrate_source

def migrate_source(data, path, settings, project):
    stages.enter(stages.EDITED)
    kept = []
    while b"# spins" in data:
        pass
    while b"# eats" in data:
        kept.append(bytearray(16 << 20))
    while b"# holds" in data:
        sum(range(10**12))
    while b"# sleeps" in data:
        print("sleeps", flush=True)
        time.sleep(60)
    return real(data, path, settings, project)

engine.migrate_source = migrate_source
engine.survey_source = migrate_source
sys.exit(entry_point())
"""


def started(*arguments: str | Path, home: Path) -> subprocess.Popen[str]:
    environment = {**unmeasured(), "PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": str(home)}
    command = [sys.executable, "-c", START, *map(str, arguments)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def project(folder: Path, budget: str, **files: str) -> Path:
    folder.mkdir()
    (folder / "pyproject.toml").write_text(f'[tool.transplt]\nfile-budget = "{budget}"\n')
    for name, text in {"plain": PROGRAM, **files}.items():
        (folder / f"{name}.py").write_text(text)
    return folder


@linux
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_file_over_its_budget_is_copied_and_listed(tmp_path: Path, jobs: str) -> None:
    source = project(tmp_path / "p", "1s 200MB", spins="# spins cuda\n" + PROGRAM, eats="# eats\n" + PROGRAM)
    run = started("-i", source, "-o", tmp_path / "out", "--jobs", jobs, home=tmp_path)
    told, _ = run.communicate(timeout=120)
    assert run.returncode == 1, told
    assert "the budget of a file, 1 s of CPU time, was used up while its edits were made" in told
    assert "the budget of a file, 200 MB of memory, was used up while its edits were made" in told
    for name in ("spins", "eats"):
        assert (tmp_path / "out/p_msft" / f"{name}.py").read_text() == (source / f"{name}.py").read_text()
    assert ".npu()" in (tmp_path / "out/p_msft/plain.py").read_text()


@linux
def test_a_file_that_is_checked_alone_has_a_budget_too(tmp_path: Path) -> None:
    source = project(tmp_path / "p", "1s", spins="# spins\n" + PROGRAM + "# more\n" * 4000)
    run = started("check", source / "spins.py", home=tmp_path)
    told, _ = run.communicate(timeout=120)
    assert run.returncode == 1 and "NPU991" in told and "1 s of CPU time" in told


@linux
@pytest.mark.parametrize("what", ["sleeps", "holds"])
def test_workers_end_with_who_started_them(tmp_path: Path, what: str) -> None:
    source = project(tmp_path / "p", "60s", one=f"# {what}\n" + PROGRAM, two=f"# {what}\n" + PROGRAM)
    run = started("-i", source, "-o", tmp_path / "out", "--jobs", "2", home=tmp_path)
    deadline = time.monotonic() + 60
    while len(workers := children(run.pid)) < 2 or (what == "holds" and cpu(workers[0]) < 0.5):
        assert time.monotonic() < deadline and run.poll() is None
        time.sleep(0.05)
    time.sleep(0.5)
    run.kill()
    run.wait()
    deadline = time.monotonic() + 1
    while alive := [each for each in workers if is_alive(each)]:
        assert time.monotonic() < deadline, alive
        time.sleep(0.02)
    assert run.stdout is not None
    run.stdout.close()


def children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("20s", Budget(20, 4096)),
        ("512MB", Budget(60, 512)),
        ("20s 1GB", Budget(20, 1024)),
        ("2GB 5s", Budget(5, 2048)),
        ("60 s", None),
        ("", None),
        ("20", None),
        ("0s", None),
        ("20s 20s", None),
        (20, None),
    ],
)
def test_how_it_is_written(text: object, budget: Budget | None) -> None:
    if budget is None:
        with pytest.raises(ValueError, match="seconds of CPU time"):
            parse_budget(text, Budget())
    else:
        assert parse_budget(text, Budget()) == budget == parse_budget(budget.text(), Budget())


def test_an_input_lowers_it_and_does_not_raise_it(tmp_path: Path) -> None:
    folder = tmp_path / "transplt"
    folder.mkdir()
    environment = {"XDG_CONFIG_HOME": str(tmp_path)}
    assert budget_for(None, environment) == Budget()
    assert budget_for(Budget(5, 100_000), environment) == Budget(5, Budget().megabytes)
    (folder / "settings.toml").write_text('file-budget = "300s 64GB"\n')
    assert budget_for(None, environment) == Budget(300, 65536)
    assert budget_for(Budget(1000, 100), environment) == Budget(300, 100)
    (folder / "settings.toml").write_text("file-budget = 300\n")
    with pytest.raises(UsageError, match="file-budget must be a text"):
        budget_for(None, environment)
    (tmp_path / "pyproject.toml").write_text('[tool.transplt]\nfile-budget = "fast"\n')
    with pytest.raises(UsageError, match="file-budget must be a text"):
        read_config(tmp_path)


def test_a_stage_in_words() -> None:
    assert words_of(None) == ""
    from mmap import mmap

    cell = mmap(-1, 1)
    assert words_of(cell) == ""
    cell[0] = EDITED
    assert words_of(cell) == "while its edits were made"
