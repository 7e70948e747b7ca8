"""Bad input to `transplt prove`: one sentence, exit code 2, and nothing runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from transplt.faces.cli.main import main as transplt

NUMBERS = "numbers of processes from 1 to 64, with commas between them."


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`old` and `new` with a main.py each that must not run."""
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "main.py").write_text("raise SystemExit('it ran')\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("old new --main train.py", "Error: no such script: train.py in old."),
        ("old new/main.py --main train.py", "Error: no such script: train.py in old."),
        ("old new --nproc 0", f"Error: --nproc 0: {NUMBERS}"),
        ("old new --nproc 1,,2", f"Error: --nproc 1,,2: {NUMBERS}"),
        ("old new --nproc two", f"Error: --nproc two: {NUMBERS}"),
        ("old new --nproc \u00b2", f"Error: --nproc \u00b2: {NUMBERS}"),
        ("old new --nproc 65", f"Error: --nproc 65: {NUMBERS}"),
        ("old new --report none/p.json", "Error: no such folder for the report: none."),
        ("old new --report none/p.html", "Error: no such folder for the report: none."),
        ("old new --style portable --against transfer-to-npu",
         "Error: --style portable compares MIGRATED with the original on CUDA: remove --against."),
        ("old new --kernels --against transfer-to-npu",
         "Error: --kernels takes the calls of ORIGINAL on the stand-in for CUDA: remove --against."),
        ("old new --data ../old", "Error: --data ../old: name a path in old, relative to it."),
    ],
)
def test_wrong_input(arguments: str, told: str, folders: Path) -> None:
    before = sorted(folders.rglob("*"))
    done = CliRunner().invoke(transplt, ["prove", *arguments.split()], standalone_mode=False)
    assert (done.return_value, done.output) == (2, f"{told}\n")
    assert sorted(folders.rglob("*")) == before


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("old", "Missing argument 'MIGRATED'"),
        ("old gone", "Path 'gone' does not exist"),
        ("old new --steps -1", "-1 is not in the range x>=0"),
        ("old new --against gpu", "'gpu' is not one of 'cuda', 'transfer-to-npu'"),
        ("old new --npus 0", "0 is not in the range 1<=x<=64"),
        ("old new --report new", "File 'new' is a directory"),
        ("old new --report new", "File 'new' is a directory"),
    ],
)
def test_wrong_usage(arguments: str, told: str, folders: Path) -> None:
    done = CliRunner().invoke(transplt, ["prove", *arguments.split()])
    assert done.exit_code == 2 and told in done.output and "Traceback" not in done.output
