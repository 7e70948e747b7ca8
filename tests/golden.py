"""Samples against their golden trees: what the tests of all kinds of samples share."""

from __future__ import annotations

import difflib
import os
import subprocess
from pathlib import Path

from click.testing import CliRunner

from scripts.regen_samples import SAMPLES, golden_files, options_for
from transplt.faces.cli.main import main

HINT = "if the change is right: python scripts/regen_samples.py, and read the diff"


def migrate(source: Path, output: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """What scripts/regen_samples.py does, in this process, which has imported what is needed."""
    here = os.getcwd()
    os.chdir(output.parent)
    try:
        done = CliRunner(env={"NO_COLOR": "1", "COLUMNS": "120"}).invoke(
            main, ["-i", str(source), "-o", str(output), *options], "transplt", standalone_mode=False,
            catch_exceptions=False,
        )  # fmt: skip
    finally:
        os.chdir(here)
    assert done.return_value in (0, 1), done.output
    return subprocess.CompletedProcess([], done.return_value, done.stdout, done.stderr)


def assert_golden(name: str, scratch: Path) -> None:
    """The sample becomes its golden tree: the same files, byte for byte, with the same mode bits."""
    migrate(SAMPLES / name / "cuda", scratch / "out", *options_for(name))
    actual = golden_files(scratch / "out" / "cuda_msft")
    expected = golden_files(SAMPLES / name / "expected")
    assert sorted(actual) == sorted(expected), HINT
    for path, (data, executable) in expected.items():
        both = (data.decode().splitlines(), actual[path][0].decode().splitlines())
        lines = difflib.unified_diff(*both, "expected", "actual", lineterm="")
        assert actual[path][0] == data, f"{path} differs; {HINT}\n" + "\n".join(lines)
        assert actual[path][1] == executable, f"{path}: mode bits"


def assert_stable(name: str, scratch: Path) -> subprocess.CompletedProcess[str]:
    """The tool has nothing to change in what it wrote with the same options; returns that second run."""
    expected = SAMPLES / name / "expected"
    done = migrate(expected, scratch / "out", *options_for(name))
    again = golden_files(scratch / "out" / "expected_msft")
    sources = {path: content for path, content in golden_files(expected).items() if path.endswith((".py", ".sh"))}
    assert sources
    assert {path: again[path] for path in sources} == sources
    return done
