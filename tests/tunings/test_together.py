"""Tunings, mixed precision and many cards on one script: what each writes fits together, and runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.regen_samples import SAMPLES
from tests.distributed.running import emulated, migrated

THEMES = ("--no-analysis", "--amp", "native", "--tune", "all,max-steps=5,step-time,profiler=2-3")
ENTRY = ("distributed", "-m", "train.py")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return migrated(SAMPLES / "distributed" / "flat" / "cuda", tmp_path / "out", *THEMES, *ENTRY)


def test_around_one_statement(folder: Path) -> None:
    text = (folder / "train.py").read_text(encoding="utf-8")
    lines = [line.strip() for line in text.splitlines()]
    step = lines.index("scaler.step(optimizer)")
    assert lines[step + 1 : step + 3] == ["scaler.update()", "train_steps += 1"]
    # it is zeroed behind the forward pass, and the scaler may leave out the first step
    assert "optimizer = torch.optim.SGD(model.parameters(), lr=0.05)" in lines
    assert lines.index("npu_port.start()") < lines.index("profiler.start()")
    assert text.count("import torch_npu") == 1


def test_again_changes_nothing(folder: Path, tmp_path: Path) -> None:
    again = migrated(folder, tmp_path / "again", *THEMES, *ENTRY)
    assert (again / "train.py").read_bytes() == (folder / "train.py").read_bytes()


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize("world", [1, 2])
def test_it_runs(folder: Path, world: int) -> None:
    lines = "\n".join(emulated(folder, "--nproc", str(world), "train.py"))
    assert "epoch 0" in lines
    assert (folder / "npu_profile").is_dir()
    assert (folder / "line.pt").is_file()
