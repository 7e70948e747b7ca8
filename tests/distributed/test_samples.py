"""The samples of `distributed`: their golden trees, and runs of these by their launch scripts."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from scripts.regen_samples import DISTRIBUTED, SAMPLES
from tests.distributed.running import emulated, launched
from tests.forked import transplt_run
from tests.golden import assert_golden, assert_stable, migrate


@pytest.mark.parametrize("name", DISTRIBUTED)
def test_sample_becomes_its_golden_tree(name: str, tmp_path: Path) -> None:
    assert_golden(name, tmp_path)


@pytest.mark.parametrize("name", DISTRIBUTED)
def test_golden_tree_is_distributed_already(name: str, tmp_path: Path) -> None:
    """A second run finds the process group, and adds nothing."""
    assert "nothing left to do" in assert_stable(name, tmp_path).stderr


RUNS = {
    "distributed/flat": ([], ["epoch 0 step 0: loss", "epoch 2: mean loss"], ["line.pt"]),
    "distributed/function": (["--amp"], ["epoch 0 [0/4] loss", "epoch 1: accuracy"], ["run/best.pt"]),
    "distributed/trainer": ([], ["epoch 0: train", "epoch 1: train"], ["run/history.json", "run/last.pt"]),
    "distributed/gan": ([], ["[0/2][0/2] D", "[1/2][0/2] D"], ["gan_0.pt", "gan_1.pt"]),
    "distributed/launched": ([], ["epoch 0: loss", "epoch 1: loss"], []),
}


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.xdist_group("distributed_samples")
@pytest.mark.parametrize("name", DISTRIBUTED)
def test_sample_runs_with_two_processes(name: str, tmp_path: Path) -> None:
    arguments, printed, files = RUNS[name]
    folder = Path(shutil.copytree(SAMPLES / name / "expected", tmp_path / "project"))
    lines = launched(folder, 2, *arguments)
    for text in printed:
        assert [line.startswith(text) for line in lines].count(True) == 1, (text, lines)
    for path in files:
        assert (folder / path).is_file()
    assert (folder / "logs").is_dir()


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.xdist_group("distributed_samples")
def test_trainer_resumes_from_the_checkpoint_of_one_card(tmp_path: Path) -> None:
    """Checkpoints are interchangeable: one card writes, two read, and the reverse."""
    one = tmp_path / "one"
    migrate(SAMPLES / "distributed/trainer/cuda", one)
    single = one / "cuda_msft"
    emulated(single, "main.py", "--epochs", "1")
    many = Path(shutil.copytree(SAMPLES / "distributed/trainer/expected", tmp_path / "many"))
    lines = launched(many, 2, "--epochs", "2", "--resume", str(single / "run" / "last.pt"))
    assert not any(line.startswith("epoch 0:") for line in lines)
    assert any(line.startswith("epoch 1: train") for line in lines)
    lines = emulated(single, "main.py", "--epochs", "3", "--resume", str(many / "run" / "last.pt"))
    assert any(line.startswith("epoch 2: train") for line in lines)


def test_launch_scripts_are_read_by_bash() -> None:
    for name in DISTRIBUTED:
        path = SAMPLES / name / "expected" / "run_distributed_npu.sh"
        subprocess.run(["bash", "-n", str(path)], check=True)


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.xdist_group("distributed_samples")
def test_the_script_of_a_sample_takes_all_emulated_cards(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(SAMPLES / "distributed/flat" / "expected", tmp_path / "project"))
    report = tmp_path / "report.json"
    _, output, errors = transplt_run(["--npus", "2", "--report", str(report), "run_distributed_npu.sh"], folder)
    told = json.loads(report.read_text(encoding="utf-8"))
    assert told["verdict"] == "runs", output + errors
    assert sorted(each["rank"] for each in told["processes"] if each["rank"]) == ["0", "1"]
