"""Calls under the condition of a known silent error are told at their line; those beside them are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.torch
PROGRAM = Path(__file__).parent / "programs" / "silent_errors.py"


def marked() -> list[int]:
    """Lines of the program that say what they are."""
    lines = PROGRAM.read_text("utf-8").splitlines()
    return [number for number, line in enumerate(lines, 1) if line.endswith("# known")]


def test_a_run_tells_each_line_once(transplt_run: Any) -> None:
    code, report, said = transplt_run(PROGRAM)
    found = [each for each in report["findings"] if each["code"] == "NPU736"]
    assert code == 0 and sorted(each["line"] for each in found) == marked()
    assert all(each["level"] == "info" and each["help"].rpartition("; ")[2].startswith("https://") for each in found)
    assert f"operators with known silent errors, under the known conditions: {len(found)}\n" in said
    (attention,) = (each for each in found if "npu_fusion_attention" in each["message"])
    assert attention["message"].startswith(
        "npu::npu_fusion_attention is known to give wrong results without an error: a query whose keys are all masked"
    )
