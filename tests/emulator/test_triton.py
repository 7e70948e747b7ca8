"""Triton kernels in a run: they run, a card's limits stop them in the right line, and healthy ones are quiet."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs triton: pip install 'transplt[triton]'"),
]
PROGRAMS = Path(__file__).parent / "programs"
Run = Callable[..., tuple[int, dict[str, Any], str]]


def planted(path: Path) -> list[tuple[int, str, str]]:
    """(line, code, level) of each remark `# planted: CODE LEVEL` of a program."""
    lines = path.read_text(encoding="utf-8").splitlines()
    found = [(number, re.search(r"# planted: (NPU\d+) (\w+)", line)) for number, line in enumerate(lines, 1)]
    return [(number, match[1], match[2]) for number, match in found if match]


def test_every_planted_limit_is_found_in_its_line_and_nothing_else(transplt_run: Run) -> None:
    path = PROGRAMS / "triton_limits.py"
    code, report, errors = transplt_run(path)
    found = [(each["line"], each["code"], each["level"]) for each in report["findings"]]
    assert report["reasons"] == ["findings"], errors
    assert len(planted(path)) >= 45
    assert sorted(found) == sorted(planted(path))
    assert code == 1


@pytest.mark.parametrize("host", ["npu", "cuda"])
def test_healthy_kernels_run_and_are_quiet(transplt_run: Run, host: str) -> None:
    options = [] if host == "npu" else ["--host", "cuda", "--dump", "dump"]
    code, report, errors = transplt_run(PROGRAMS / "triton_healthy.py", host, options=options)
    told = report["stdout"].splitlines()
    assert code == 0, errors
    assert len([line for line in told if "True" in line]) == 10, told
    assert "False" not in report["stdout"]
    assert report["findings"] == [] and report["notes"] == []
