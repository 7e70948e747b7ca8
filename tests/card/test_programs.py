"""Programs that compare what the card computes with the CPU, or with what torch_npu documents, by themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import forked

pytestmark = [pytest.mark.torch, pytest.mark.card]
PROGRAMS = Path(__file__).parent / "programs"
#: What programs share: it computes nothing by itself.
SHARED = {"beside.py", "both.py"}


@pytest.mark.parametrize("name", sorted({path.name for path in PROGRAMS.glob("*.py")} - SHARED))
def test_a_program_ends_well(name: str, tmp_path: Path) -> None:
    ranks = 2 if name.startswith("ranks_") else 0
    done = forked.on_npus(PROGRAMS / name, (), tmp_path, nproc=ranks)
    assert done.returncode == 0, done.stdout + done.stderr
