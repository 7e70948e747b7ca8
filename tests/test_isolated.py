"""--isolated reads no settings of the input; a run says which of them switch findings off, and how to go without."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from transplt import check, migrate_tree
from transplt.faces.cli import main as cli
from transplt.project.report.summary import summary

USES_CUDA = 'import torch\nx = torch.zeros(1, device="cuda")\n'
ALL_OFF = '[tool.transplt.per-file-ignores]\n"*" = []\n'
ALL_OUT = '[tool.transplt]\nexclude = ["*.py"]\n'
SAID_OFF = "pyproject.toml: per-file-ignores turns off codes in {} of {}; --isolated ignores this"

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """The command in this process, in the folder of the project: exit code, stdout, stderr."""
    folder = tmp_path / "proj"
    (folder / "sub").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / "a.py").write_text(USES_CUDA)
    (folder / "sub" / "b.py").write_text(USES_CUDA)
    monkeypatch.chdir(folder)

    def call(settings: str, *arguments: str) -> tuple[int, str, str]:
        (folder / "pyproject.toml").write_text(settings)
        monkeypatch.setattr(sys, "argv", ["transplt", *arguments])
        monkeypatch.setattr(cli, "_catch_signals", lambda: None)
        code = cli.entry_point()
        return code, *capsys.readouterr()

    return call


def test_a_migration_says_that_its_settings_convert_nothing(run: Run) -> None:
    code, _, err = run(ALL_OFF, "-i", ".", "-o", "../out")
    assert code == 0
    assert "  " + SAID_OFF.format(3, "3 files, all codes in 3") in err.splitlines()
    assert Path("../out/proj_msft/a.py").read_text() == USES_CUDA


def test_an_isolated_migration_converts(run: Run) -> None:
    code, _, err = run(ALL_OFF, "-i", ".", "-o", "../out", "--isolated")
    assert code == 0
    assert "--isolated" not in err
    assert "npu" in Path("../out/proj_msft/a.py").read_text()


def test_a_part_that_is_switched_off_is_counted(run: Run) -> None:
    settings = '[tool.transplt.per-file-ignores]\n"sub/*" = ["NPU2"]\n"none.py" = []\n'
    _, _, err = run(settings, "-i", ".", "-o", "../out")
    assert "  " + SAID_OFF.format(1, "3 files") in err.splitlines()


def test_settings_that_meet_no_file_are_no_matter(run: Run) -> None:
    _, _, err = run('[tool.transplt]\nexclude = ["z/"]\nper-file-ignores = {"z" = []}\n', "-i", ".", "-o", "../out")
    assert "--isolated" not in err


def test_a_migration_says_what_its_settings_leave_out(run: Run) -> None:
    _, _, err = run(ALL_OUT, "-i", ".", "-o", "../out", "--exclude", "sub/")
    assert "  pyproject.toml: exclude skips 1 path; --isolated ignores this" in err.splitlines()
    _, _, err = run("", "-i", ".", "-o", "../out2", "--exclude", "sub/")
    assert "--isolated" not in err


@pytest.mark.parametrize("paths", [[], ["a.py"]])
def test_a_check_says_that_its_settings_report_nothing(run: Run, paths: list[str]) -> None:
    files = "1 file, all codes in 1" if paths else "3 files, all codes in 3"
    code, out, err = run(ALL_OFF, "check", *paths)
    assert (code, out) == (0, "")
    assert SAID_OFF.format(len(paths) or 3, files) in err.splitlines()
    code, out, err = run(ALL_OUT, "check", *paths)
    assert code == 0
    many = "1 path" if paths else "2 paths"
    assert f"pyproject.toml: exclude skips {many}; --isolated ignores this" in err.splitlines()
    for settings in (ALL_OFF, ALL_OUT):
        code, out, err = run(settings, "check", "--isolated", *paths)
        assert code == 1
        assert "a.py:2" in out and "--isolated" not in err
    _, _, err = run(ALL_OFF, "check", "-q", *paths)
    assert err == ""


def test_what_the_command_line_switches_off_is_not_said(run: Run) -> None:
    code, _, err = run("", "check", "--ignore", "NPU", "--exclude", "sub/")
    assert code == 0
    assert "isolated" not in err


def test_settings_with_faults_are_not_read(run: Run) -> None:
    for arguments in (["check"], ["-i", ".", "-o", "../out"], ["analyze", "."], ["config"]):
        assert run("[tool.transplt]\nx = 1", *arguments)[0] == 2
        assert run("[tool.transplt]\nx = 1", *arguments, "--isolated")[0] != 2


def test_the_style_of_the_settings_is_none_of_an_isolated_fix(run: Run) -> None:
    code, _, err = run('[tool.transplt]\nstyle = "npu"\n', "check", "--fix", "--isolated")
    assert code == 2 and "--fix needs a style" in err


def test_analyze(run: Run) -> None:
    _, _, err = run(ALL_OFF, "analyze", ".")
    assert SAID_OFF.format(3, "3 files, all codes in 3") in err.splitlines()
    _, _, err = run(ALL_OFF, "analyze", ".", "--isolated")
    assert "isolated" not in err


def test_distributed(run: Run) -> None:
    _, _, err = run(ALL_OUT, "distributed", "-m", "a.py", "-o", "../out")
    said = "the migration does not include this file (excluded); pyproject.toml: exclude skips 1 path; --isolated"
    assert said in err
    _, _, err = run(ALL_OUT, "distributed", "-m", "a.py", "-o", "../out2", "--isolated")
    assert "--isolated ignores" not in err
    assert os.path.isfile("../out2/proj_msft/a.py")


def test_config(run: Run) -> None:
    settings = '[tool.transplt]\nsimilar = true\nexclude = ["z/"]\nper-file-ignores = {"*" = [], "y" = ["NPU3"]}\n'
    code, out, err = run(settings, "config", "--format=json")
    assert code == 0
    assert err.splitlines() == [
        "pyproject.toml: per-file-ignores turns off all codes for '*'; --isolated ignores this",
        "pyproject.toml: per-file-ignores turns off NPU3 for 'y'; --isolated ignores this",
        "pyproject.toml: exclude skips 'z/'; --isolated ignores this",
    ]
    assert json.loads(out)["similar"] == {"value": True, "source": "pyproject.toml"}
    code, out, err = run(settings, "config", "--format=json", "--isolated")
    assert (code, err) == (0, "")
    assert json.loads(out)["similar"] == {"value": False, "source": "default"}


def test_the_library(run: Run) -> None:
    run(ALL_OFF, "config")
    assert not check(".").findings and "all codes in 3" in check(".").notes[0]
    assert check(".", isolated=True).findings and not check(".", isolated=True).notes
    result = migrate_tree(".", "../out", isolated=True)
    assert result.changed and not result.notes
    assert "isolated" not in "\n".join(summary(result))


def test_a_rule_file_of_the_settings_that_is_none(run: Run) -> None:
    os.mkfifo("r.json")
    settings = '[tool.transplt]\nrules = ["r.json"]\n'
    for arguments in (["check"], ["-i", ".", "-o", "../out"], ["analyze", "."]):
        code, _, err = run(settings, *arguments)
        assert code == 2
        assert "only regular files are read (named by pyproject.toml; --isolated ignores it)" in err
        assert run(settings, *arguments, "--isolated")[0] in (0, 1)
