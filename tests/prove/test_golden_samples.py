"""The samples prove themselves: what was written trains as the original does, with one process and with two."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from scripts.regen_samples import ROOT, SAMPLES
from tests.processes import measured_alone

pytestmark = [pytest.mark.torch]

_LONG = pytest.mark.slow
#: Sample, script, numbers of processes, arguments.
PROVEN = [
    ("distributed/function", "train.py", "1,2", ""),
    ("amp/function", "train.py", "1", ""),
    pytest.param("distributed/flat", "train.py", "1,2", "", marks=_LONG),
    pytest.param("distributed/trainer", "main.py", "1,2", "", marks=_LONG),
    pytest.param("distributed/gan", "gan.py", "1,2", "", marks=_LONG),
    pytest.param("distributed/launched", "train.py", "1,2", "", marks=_LONG),
]


@pytest.mark.parametrize(("sample", "main", "nproc", "arguments"), PROVEN)
def test_golden_tree_is_equal(sample: str, main: str, nproc: str, arguments: str, tmp_path: Path) -> None:
    report = tmp_path / "proof.json"
    before, after = SAMPLES / sample / "cuda", SAMPLES / sample / "expected"
    command = [*measured_alone("transplt"), "prove", "--main", main, "--nproc", nproc, "--json", str(report)]
    done = subprocess.run(
        [*command, str(before), str(after), "--", *arguments.split()],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert report.is_file(), done.stderr
    told = json.loads(report.read_text(encoding="utf-8"))
    assert (done.returncode, told["verdict"]) == (0, "equal"), done.stdout
    assert all(part["steps"] > 0 for part in told["comparisons"])
