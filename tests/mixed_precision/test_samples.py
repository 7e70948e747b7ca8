"""The samples of `--amp native`: golden trees, and runs of them against the same scripts in float32."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from scripts.regen_samples import AMP, SAMPLES
from tests.distributed.running import emulated, launched, migrated, precise
from tests.golden import assert_golden, assert_stable

MAIN = {"amp/trainer": "main.py", "amp/gan": "gan.py"}
#: Loss of a step against the float32 run, absolute. In `flat` the scaler leaves out the first steps: all later losses
#: are those of one or two steps before. The others differ by the rounding of half precision.
TOLERANCE = {"amp/flat": 0.1, "amp/function": 0.01, "amp/trainer": 0.01, "amp/accumulation": 0.01, "amp/gan": 0.02}


def slow(*values: Any) -> Any:
    return pytest.param(*values, marks=pytest.mark.slow)


def main_of(name: str) -> str:
    return MAIN.get(name, "train.py")


def losses(lines: list[str]) -> list[float]:
    return [float(value) for line in lines for value in re.findall(r"\b(?:loss|D|G) (-?\d+\.\d+)", line)]


@pytest.mark.parametrize("name", AMP)
def test_sample_becomes_its_golden_tree(name: str, tmp_path: Path) -> None:
    assert_golden(name, tmp_path)


@pytest.mark.parametrize("name", AMP)
def test_a_second_run_changes_nothing(name: str, tmp_path: Path) -> None:
    assert_stable(name, tmp_path)


@pytest.mark.torch
@pytest.mark.parametrize("name", [name if name == "amp/function" else slow(name) for name in AMP])
def test_losses_fall_and_stay_near_those_of_float32(name: str, tmp_path: Path) -> None:
    full = losses(emulated(precise(migrated(SAMPLES / name / "cuda", tmp_path / "float32")), main_of(name)))
    half = Path(shutil.copytree(SAMPLES / name / "expected", tmp_path / "float16"))
    found = losses(emulated(precise(half), main_of(name)))
    assert len(found) == len(full) >= (5 if name == "amp/trainer" else 50)
    assert max(abs(a - b) for a, b in zip(found, full, strict=True)) < TOLERANCE[name]
    assert found != full, "float32 and float16 differ in the last digits"
    if name != "amp/gan":  # the two losses of a GAN do not fall
        assert sum(found[-3:]) / 3 < 0.9 * sum(found[:3]) / 3


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize(("name", "dtype"), [("amp/flat", "bfloat16"), ("amp/gan", "bfloat16")])
def test_bfloat16_needs_no_scaler(name: str, dtype: str, tmp_path: Path) -> None:
    full = losses(emulated(migrated(SAMPLES / name / "cuda", tmp_path / "float32"), main_of(name)))
    folder = migrated(SAMPLES / name / "cuda", tmp_path / "half", "--amp", "native", "--amp-dtype", dtype)
    assert "scaler" not in (folder / main_of(name)).read_text(encoding="utf-8")
    found = losses(emulated(folder, main_of(name)))
    assert max(abs(a - b) for a, b in zip(found, full, strict=True)) < 0.02


@pytest.mark.torch
@pytest.mark.parametrize(
    ("name", "world"), [("amp/function", 2), slow("amp/function", 1), slow("amp/trainer", 1), slow("amp/trainer", 2)]
)
def test_many_cards_and_mixed_precision_compose(name: str, world: int, tmp_path: Path) -> None:
    source = SAMPLES / name / "cuda"
    options = ["--amp", "native", "distributed", "-m", str(source / main_of(name))]
    folder = migrated(source, tmp_path / "out", *options)
    text = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
    assert "DistributedDataParallel" in text and 'torch.amp.GradScaler("npu")' in text
    found = losses([line for line in launched(folder, world) if line.startswith("epoch ")])
    assert found[-1] < 0.9 * found[0]


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize("name", ["amp/flat", "amp/accumulation", "amp/gan"])
def test_two_processes_stay_near_two_in_float32(name: str, tmp_path: Path) -> None:
    source = SAMPLES / name / "cuda"
    spread = ["distributed", "-m", str(source / main_of(name))]
    full = losses(launched(migrated(source, tmp_path / "float32", *spread), 2))
    half = losses(launched(migrated(source, tmp_path / "float16", "--amp", "native", *spread), 2))
    assert len(half) == len(full) >= 20
    assert max(abs(a - b) for a, b in zip(half, full, strict=True)) < TOLERANCE[name]
    assert half != full, "float32 and float16 differ in the last digits"
