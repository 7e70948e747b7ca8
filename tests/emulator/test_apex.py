"""The emulator's apex against what Ascend apex and NVIDIA apex document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.torch

SECTIONS = ("o1", "o2", "overflow", "accumulation", "losses", "resume", "off", "refused", "clip")


def test_documented_behaviour(program: Any) -> None:
    """Each section in a process of its own, forked from one that has imported torch."""
    done = program("apex_amp.py", *SECTIONS, code=None)
    assert [section for section in SECTIONS if f"{section} ok" not in done.stdout] == [], done.stdout + done.stderr
    assert "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0" in done.stdout


def test_combine_ddp_averages_over_the_ranks(program: Any) -> None:
    assert program("apex_amp.py", "ranks", nproc=2, npus=2).stdout.count("ranks ok") == 2


def test_a_package_of_the_environment_wins(tmp_path: Path, program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of the script is on the path before everything that the emulator brings."""
    from tests.emulator import conftest

    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "apex.py").write_text("here = True\n", encoding="utf-8")
    (folder / "main.py").write_text("import apex\nassert apex.here\nprint('mine')\n", encoding="utf-8")
    monkeypatch.setattr(conftest, "HERE", tmp_path)
    assert "mine" in program("main.py").stdout
