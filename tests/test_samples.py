"""The two samples and the portable one, migrated by the command line, against their golden trees."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.regen_samples import NAMES, PORTABLE, SAMPLES, golden_files, migrate
from tests.golden import assert_golden, assert_stable


@pytest.mark.parametrize("name", (*NAMES, *PORTABLE))
def test_sample_becomes_its_golden_tree(name: str, tmp_path: Path) -> None:
    assert_golden(name, tmp_path)


@pytest.mark.parametrize("name", (*NAMES, *PORTABLE))
def test_golden_tree_is_a_fixed_point(name: str, tmp_path: Path) -> None:
    assert_stable(name, tmp_path)


@pytest.mark.parametrize("name", (*NAMES, *PORTABLE))
def test_input_is_not_touched(name: str, tmp_path: Path) -> None:
    source = SAMPLES / name / "cuda"
    before = {path: (path.stat().st_mtime_ns, path.stat().st_mode) for path in source.rglob("*")}
    content = golden_files(source)
    migrate(source, tmp_path / "out")
    assert golden_files(source) == content
    assert {path: (path.stat().st_mtime_ns, path.stat().st_mode) for path in source.rglob("*")} == before
