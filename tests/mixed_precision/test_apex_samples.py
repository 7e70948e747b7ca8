"""The samples of `--amp apex` and `--amp-flag`: golden trees, and runs of them against the same scripts in float32."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from scripts.regen_samples import APEX, SAMPLES
from tests.distributed.running import emulated, launched, migrated, precise
from tests.golden import assert_golden, assert_stable

MAIN = {"amp_apex/project": "main.py", "amp_apex/gan": "gan.py"}
#: Loss against the float32 run, absolute. Where the scale is dynamic it may leave out the first step.
TOLERANCE = {
    "amp_apex/flat": 0.1,
    "amp_apex/project": 0.02,
    "amp_apex/gan": 0.02,
    "amp_flag/native": 0.1,
    "amp_flag/apex": 0.01,
}


def main_of(name: str) -> str:
    return MAIN.get(name, "train.py")


def asks(name: str) -> list[str]:
    """The option that switches mixed precision on, where the script has one."""
    return ["--amp"] if name.startswith("amp_flag/") else []


def losses(lines: list[str]) -> list[float]:
    return [float(value) for line in lines for value in re.findall(r"\b(?:loss|D|G) (-?\d+\.\d+)", line)]


@pytest.mark.parametrize("name", APEX)
def test_sample_becomes_its_golden_tree(name: str, tmp_path: Path) -> None:
    assert_golden(name, tmp_path)


@pytest.mark.parametrize("name", APEX)
def test_a_second_run_changes_nothing(name: str, tmp_path: Path) -> None:
    assert_stable(name, tmp_path)


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in APEX if name != "quick_start"])
def test_losses_fall_and_stay_near_those_of_float32(name: str, tmp_path: Path) -> None:
    full = losses(emulated(precise(migrated(SAMPLES / name / "cuda", tmp_path / "float32")), main_of(name)))
    half = Path(shutil.copytree(SAMPLES / name / "expected", tmp_path / "float16"))
    found = losses(emulated(precise(half), main_of(name), *asks(name)))
    assert len(found) == len(full) >= (5 if name == "amp_apex/project" else 50)
    assert max(abs(a - b) for a, b in zip(found, full, strict=True)) < TOLERANCE[name]
    assert found != full, "float32 and float16 differ in the last digits"
    if name != "amp_apex/gan":  # the two losses of a GAN do not fall
        assert sum(found[-3:]) / 3 < 0.9 * sum(found[:3]) / 3


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize("name", ["amp_flag/native", "amp_flag/apex"])
def test_without_its_flag_the_script_trains_in_float32(name: str, tmp_path: Path) -> None:
    full = emulated(migrated(SAMPLES / name / "cuda", tmp_path / "float32"), main_of(name))
    folder = Path(shutil.copytree(SAMPLES / name / "expected", tmp_path / "flag"))
    assert losses(emulated(folder, main_of(name))) == losses(full)


@pytest.mark.torch
@pytest.mark.slow
def test_checkpoints_with_and_without_amp_go_into_each_other(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(SAMPLES / "amp_flag/apex/expected", tmp_path / "flag"))
    for options in ([], ["--amp"], ["--amp"], []):
        lines = emulated(folder, "train.py", "--steps", "5", *options)
        assert len(losses(lines)) == 5
    assert lines[0].startswith("step 15:")


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize("level", ["O1", "O2"])
def test_the_project_resumes(level: str, tmp_path: Path) -> None:
    """What is shuffled is drawn anew: the loss goes on below that of the epoch in which the script stopped."""
    folder = migrated(SAMPLES / "amp_apex/project/cuda", tmp_path / "out", "--amp", "apex", "--opt-level", level)
    whole = losses(emulated(folder, "main.py", "--epochs", "4"))
    emulated(folder, "main.py", "--epochs", "2")
    lines = emulated(folder, "main.py", "--epochs", "4", "--resume", "last.pt")
    assert [line.split(":")[0] for line in lines if line.startswith("epoch")] == ["epoch 2", "epoch 3"]
    assert losses(lines)[-1] < whole[1]


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize("world", [1, 2])
def test_many_cards_and_apex_compose(world: int, tmp_path: Path) -> None:
    source = SAMPLES / "amp_apex/project/cuda"
    options = ["--amp", "apex", "--opt-level", "O2", "distributed", "-m", str(source / "main.py")]
    folder = migrated(source, tmp_path / "out", *options)
    text = (folder / "main.py").read_text(encoding="utf-8")
    assert text.index("amp.initialize(") < text.index("npu_port.wrap(model)")
    found = losses([line for line in launched(folder, world) if line.startswith("epoch ")])
    assert found[-1] < 0.9 * found[0]
