"""Samples against their golden trees: what the tests of all kinds of samples share."""

from __future__ import annotations

import difflib
import subprocess
from pathlib import Path

from scripts.regen_samples import SAMPLES, golden_files, migrate, options_for

HINT = "if the change is right: python scripts/regen_samples.py, and read the diff"


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
