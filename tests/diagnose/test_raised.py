"""The programs that raise known errors: the real torch_npu over the emulated card says what the row recognises."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests import forked
from tests.diagnose.diagnoses import diagnosed
from transplt.rules.errors import KnownError, known_errors

HERE = Path(__file__).parent
RAISED = [error for error in known_errors() if error.raises]
#: A part of them for each change; programs that start others take longest.
SAMPLE = [error for error in RAISED if "subprocess" not in error.raises and "os.system" not in error.raises][::6]


def test_there_are_enough() -> None:
    assert len(RAISED) >= 80
    assert sum("npu" in error.raises for error in RAISED) >= 60
    assert max(error.raises.count("\n") for error in RAISED) < 12


def test_a_page_shows_the_program() -> None:
    assert "## A program that raises it\n\n    import torch, torch_npu\n    torch.npu.set_device(99)" in next(
        error.text() for error in RAISED if error.code == "107001"
    )


@pytest.mark.torch
def test_the_real_torch_npu_says_what_the_row_recognises(tmp_path: Path, subtests: pytest.Subtests) -> None:
    hold(SAMPLE, tmp_path, subtests)


@pytest.mark.torch
@pytest.mark.slow
def test_each_program_raises_what_its_row_recognises(tmp_path: Path, subtests: pytest.Subtests) -> None:
    hold(RAISED, tmp_path, subtests)


def hold(errors: Iterable[KnownError], folder: Path, subtests: pytest.Subtests) -> None:
    """What each program prints names its error."""
    # Warnings come first, as some are given once; what replaces torch's names comes last.
    ordered = sorted(errors, key=lambda error: ("transfer_to_npu" in error.raises, -error.kind))
    programs = {error.name: error.raises for error in ordered}
    given, output = folder / "programs.json", folder / "printed.json"
    given.write_text(json.dumps(programs), "utf-8")
    done = forked.on_npus(HERE / "raised.py", (str(given), str(output)), folder, cuda="off")
    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads(output.read_text("utf-8"))
    for name in programs:
        with subtests.test(name):
            found = diagnosed(said[name])
            assert name in found.named, said[name]
