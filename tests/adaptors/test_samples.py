"""The samples of the adaptors: golden trees, and a run of what the original cannot run without its extension."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from scripts.regen_samples import ADAPTED, SAMPLES
from tests.distributed.running import emulated
from tests.golden import assert_golden, assert_stable


@pytest.mark.parametrize("name", ADAPTED)
def test_sample_becomes_its_golden_tree(name: str, tmp_path: Path) -> None:
    assert_golden(name, tmp_path)


@pytest.mark.parametrize("name", ADAPTED)
def test_a_second_run_changes_nothing(name: str, tmp_path: Path) -> None:
    assert_stable(name, tmp_path)


@pytest.mark.torch
def test_points_train_on_the_emulated_card(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(SAMPLES / "adaptors/points/expected", tmp_path / "points"))
    lines = [line for line in emulated(folder, "train.py") if line.startswith("step")]
    losses = [float(line.rpartition(" ")[2]) for line in lines]
    assert len(losses) == 8 and losses[-1] < losses[0] - 0.1
