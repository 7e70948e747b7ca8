"""The samples of the tunings: golden trees, and runs of them that print what the scripts without tunings print."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from scripts.regen_samples import SAMPLES, TUNED
from tests.distributed.running import emulated, migrated
from tests.golden import assert_golden, assert_stable


@pytest.mark.parametrize("name", TUNED)
def test_sample_becomes_its_golden_tree(name: str, tmp_path: Path) -> None:
    assert_golden(name, tmp_path)


@pytest.mark.parametrize("name", TUNED)
def test_a_second_run_changes_nothing(name: str, tmp_path: Path) -> None:
    assert_stable(name, tmp_path)


WORDS = "tunings/words"


def words(folder: Path, world: int, *arguments: str) -> list[str]:
    lines = emulated(folder, "--nproc", str(world), "train.py", *arguments)
    return [line for line in lines if line.startswith(("loss", "mean", "correct"))]


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize("world", [1, 2])
def test_words_train_as_they_did(world: int, tmp_path: Path) -> None:
    """64 samples fill all batches of 8 on one card and on two: no step is left out, and every number is the same."""
    tuned = Path(shutil.copytree(SAMPLES / WORDS / "expected", tmp_path / "tuned"))
    plain = migrated(SAMPLES / WORDS / "cuda", tmp_path / "out")
    lines = words(tuned, world)
    assert len([line for line in lines if line.startswith("loss")]) == 2 * 8 // world
    assert lines == words(plain, world)


@pytest.mark.torch
@pytest.mark.slow
def test_what_fills_no_batch_is_left_out(tmp_path: Path) -> None:
    """19 samples make two steps of 8, where they made three; the validation of 25 keeps all of its data."""
    tuned = Path(shutil.copytree(SAMPLES / WORDS / "expected", tmp_path / "tuned"))
    plain = migrated(SAMPLES / WORDS / "cuda", tmp_path / "out")
    arguments = ("--samples", "19", "--epochs", "1", "--workers", "0")
    short, whole = words(tuned, 1, *arguments, "--count"), words(plain, 1, *arguments)
    assert [line.split()[2] for line in short if line.startswith("loss")] == ["0", "1"]
    assert [line.split()[2] for line in whole if line.startswith("loss")] == ["0", "1", "2"]
    assert short[:2] == whole[:2]
    assert next(line for line in short if line.startswith("mean")).startswith("mean 0 16 ")


@pytest.mark.torch
@pytest.mark.slow
def test_meters_are_summed_over_the_ranks(tmp_path: Path) -> None:
    """In float64 HCCL refuses to."""
    tuned = Path(shutil.copytree(SAMPLES / WORDS / "expected", tmp_path / "tuned"))
    means = [line.split() for line in words(tuned, 2, "--count", "--epochs", "1") if line.startswith("mean")]
    assert [line[:3] for line in means] == [["mean", "0", "64"]]
