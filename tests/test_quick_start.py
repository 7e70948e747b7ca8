"""The quick start: every command of its pages, on a sample of the example's shape, or on the example itself.

`TRANSPLT_EXAMPLES=CHECKOUT`, a checkout of pytorch/examples at commit 6ab697c, makes it run on that.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from scripts.regen_samples import ROOT, SAMPLES
from tests.processes import measured_alone

CHECKOUT = os.environ.get("TRANSPLT_EXAMPLES", "")


def commands(page: str) -> list[str]:
    """The command lines of a page, in their order."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S)
    return [line for block in blocks for line in block.splitlines()]


def test_both_languages_have_the_same_commands() -> None:
    assert commands("quick_start.md") == commands("quick_start_zh.md")
    assert len(commands("quick_start.md")) == 8


def type_all(folder: Path) -> None:
    """Type what follows the two commands that fetch the example."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    for command in commands("quick_start.md")[2:]:
        program, *arguments = shlex.split(command)
        assert program == "transplt"
        done = subprocess.run(
            [*measured_alone("transplt"), *arguments], cwd=folder, env=env, capture_output=True, text=True, check=False
        )
        # A migration leaves the commands of the example's README to a person.
        assert done.returncode in ((0, 1) if arguments[0] == "-i" else (0,)), (command, done.stdout + done.stderr)
        assert arguments[0] != "prove" or done.stdout.startswith("transplt prove: equal: "), done.stdout
    assert (folder / "checkpoint.pth").exists() or (folder / "checkpoint.pth.tar").exists()


@pytest.mark.torch
def test_every_command_on_a_sample_of_the_same_shape(tmp_path: Path) -> None:
    (tmp_path / "examples").mkdir()
    shutil.copytree(SAMPLES / "quick_start" / "cuda", tmp_path / "examples" / "imagenet")
    type_all(tmp_path)


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.skipif(not CHECKOUT, reason="TRANSPLT_EXAMPLES names no checkout of pytorch/examples")
def test_every_command_on_the_example(tmp_path: Path) -> None:
    shutil.copytree(Path(CHECKOUT) / "imagenet", tmp_path / "examples" / "imagenet")
    type_all(tmp_path)
