"""samples/tunings/steps: fused optimizers and clipping train as those of PyTorch do, on one card and on two."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from scripts.regen_samples import SAMPLES
from tests.distributed.running import emulated, migrated

NAME = "tunings/steps"
STEPS = 24
_LOSS = re.compile(r"loss (\d+) (\d+) (\d+\.\d{5}) norm (\d+\.\d{4})")


@pytest.fixture
def tuned(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SAMPLES / NAME / "expected", tmp_path / "tuned"))


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    return migrated(SAMPLES / NAME / "cuda", tmp_path / "out")


def losses(lines: list[str]) -> dict[tuple[str, str], list[tuple[float, float]]]:
    """(epoch, step) -> loss and norm of each rank, sorted."""
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for epoch, step, loss, norm in _LOSS.findall("\n".join(lines)):  # lines of two ranks may be one
        found.setdefault((epoch, step), []).append((float(loss), float(norm)))
    return {place: sorted(values) for place, values in found.items()}


@pytest.mark.torch
@pytest.mark.parametrize(
    ("world", "optimizer"),
    [(2, "adamw"), *(pytest.param(1, name, marks=pytest.mark.slow) for name in ("adamw", "sgd"))],
)
def test_it_trains_as_without(world: int, optimizer: str, tuned: Path, plain: Path) -> None:
    arguments = ("--nproc", str(world), "train.py", "--optimizer", optimizer, "--lr", "0.02")
    with_tunings, without = emulated(tuned, *arguments), emulated(plain, *arguments)
    mine, theirs = losses(with_tunings), losses(without)
    assert len(mine) == STEPS
    assert set(mine) < set(theirs)
    for place, values in mine.items():
        for ours, others in zip(values, theirs[place], strict=True):
            assert ours == pytest.approx(others, rel=5e-3, abs=5e-4), place
    first, last = mine["0", "0"][0][0], min(mine.values())[0][0]
    assert last < 0.7 * first
    printed = "\n".join(with_tunings)
    timed = len(re.findall(r"step time \d+\.\d ms, \d+\.\d samples/s", printed))
    assert timed == (2 if world == 1 else 0)  # passes of more than five steps
    assert printed.count("trained") == world
    assert (tuned / "npu_profile").is_dir()
    assert (tuned / "last.pt").is_file()


@pytest.mark.torch
@pytest.mark.slow
def test_checkpoints_of_either_go_on_with_the_other(tuned: Path, plain: Path) -> None:
    import torch

    emulated(plain, "train.py", "--epochs", "2")
    old = torch.load(plain / "last.pt", map_location="cpu")
    for state in old["optimizer"]["state"].values():
        state["step"] = int(state["step"])  # torch_npu counts a tensor twice in each step (page of NPU750)
    torch.save(old, tuned / "old.pt")
    shutil.copy(plain / "last.pt", plain / "old.pt")
    resumed = ("train.py", "--epochs", "4", "--resume", "old.pt")
    mine, theirs = losses(emulated(tuned, *resumed)), losses(emulated(plain, *resumed))
    assert len(mine) == 20
    for place, values in mine.items():
        assert values[0] == pytest.approx(theirs[place][0], rel=5e-3, abs=5e-4), place
    shutil.copy(tuned / "last.pt", plain / "new.pt")
    assert "trained" in emulated(plain, "train.py", "--epochs", "5", "--resume", "new.pt")
