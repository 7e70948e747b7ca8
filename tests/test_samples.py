"""The two samples, migrated by the command line, against their golden trees."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from scripts.regen_samples import NAMES, SAMPLES, golden_files, migrate

HINT = "if the change is right: python scripts/regen_samples.py, and read the diff"


@pytest.mark.parametrize("name", NAMES)
def test_sample_becomes_its_golden_tree(name: str, tmp_path: Path) -> None:
    migrate(SAMPLES / name / "cuda", tmp_path / "out")

    actual = golden_files(tmp_path / "out" / "cuda_msft")
    expected = golden_files(SAMPLES / name / "expected")
    assert sorted(actual) == sorted(expected), HINT
    for path, (data, executable) in expected.items():
        if actual[path][0] != data:
            lines = difflib.unified_diff(
                data.decode().splitlines(), actual[path][0].decode().splitlines(), "expected", "actual", lineterm=""
            )
            pytest.fail(f"{path} differs; {HINT}\n" + "\n".join(lines))
        assert actual[path][1] == executable, f"{path}: mode bits"


@pytest.mark.parametrize("name", NAMES)
def test_golden_tree_is_a_fixed_point(name: str, tmp_path: Path) -> None:
    """The tool has nothing to change in what it wrote."""
    expected = SAMPLES / name / "expected"
    migrate(expected, tmp_path / "out")

    again = golden_files(tmp_path / "out" / "expected_msft")
    sources = {path: content for path, content in golden_files(expected).items() if path.endswith((".py", ".sh"))}
    assert sources
    assert {path: again[path] for path in sources} == sources


@pytest.mark.parametrize("name", NAMES)
def test_input_is_not_touched(name: str, tmp_path: Path) -> None:
    source = SAMPLES / name / "cuda"
    before = {path: (path.stat().st_mtime_ns, path.stat().st_mode) for path in source.rglob("*")}
    content = golden_files(source)
    migrate(source, tmp_path / "out")
    assert golden_files(source) == content
    assert {path: (path.stat().st_mtime_ns, path.stat().st_mode) for path in source.rglob("*")} == before
