"""The walk of docs/precision.md from a strange loss curve to the line: its commands, and what they print."""

from __future__ import annotations

import importlib.util
import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import unmeasured

ROOT = Path(__file__).resolve().parents[2]
_NUMBER = re.compile(r"(\d+(?:\.\d+)?(?:e-?\d+)?)")


def chapter() -> list[tuple[str, list[str]]]:
    """(kind, lines) of the blocks of the chapter."""
    text = (ROOT / "docs" / "precision.md").read_text(encoding="utf-8")
    text = text.partition("## From a strange loss curve to the line\n")[2].partition("\n## ")[0]
    return [(kind, body.splitlines()) for kind, body in re.findall(r"^```(\w+)\n(.*?)^```", text, re.M | re.S)]


def same(line: str, other: str) -> bool:
    """Whether two lines say the same; figures may be off by a twentieth on another processor."""
    ours, theirs = _NUMBER.split(line.strip()), _NUMBER.split(other.strip()[: len(other)])
    if len(theirs) < len(ours):
        return False
    pairs = zip(ours, theirs, strict=False)
    return all(
        math.isclose(float(one), float(two), rel_tol=0.05, abs_tol=1e-9) if number % 2 else two.startswith(one)
        for number, (one, two) in enumerate(pairs)
    )


def test_lines_are_held_against_what_is_shown() -> None:
    assert same("part 1 of 5 fine  mean 0.0090", "  part 1 of 5 fine  mean 0.0091")
    assert same("1 failed, 1 passed", "1 failed, 1 passed in 2.3s")
    assert not same("scaled by 1.2", "scaled by 1.02")
    assert not same("first divergence: a", "no divergence: a")


@pytest.mark.slow  # each of its commands has tests of its own, which are quicker
@pytest.mark.torch
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs the extra `emulator`")
def test_every_command_of_the_walk(tmp_path: Path) -> None:
    work, programs = tmp_path / "work", tmp_path / "bin"
    shutil.copytree(ROOT / "samples" / "precision", work / "samples" / "precision")
    programs.mkdir()
    for name, module in (("transplt", "-m transplt"), ("python", "-P")):
        path = f'PYTHONPATH="{ROOT}" ' if name == "transplt" else ""
        (programs / name).write_text(f'#!/bin/sh\n{path}exec "{sys.executable}" {module} "$@"\n')
        (programs / name).chmod(0o755)
    env = {
        **unmeasured(), "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }  # fmt: skip
    printed: list[str] = []
    commands = 0
    for kind, lines in chapter():
        if kind == "sh":
            printed = []
            for command in lines:
                done = subprocess.run(
                    ["bash", "-c", command], cwd=work, env=env, capture_output=True, text=True, check=False
                )
                assert done.returncode in (0, 1), (command, done.stdout + done.stderr)
                assert "Traceback" not in done.stderr and "Error: " not in done.stderr, (command, done.stderr)
                printed += done.stdout.replace(f"{work}{os.sep}", "").splitlines()
                commands += 1
        else:
            for line in lines:
                assert any(same(line, each) for each in printed), (line, printed)
    assert commands == 9
