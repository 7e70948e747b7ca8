"""The golden trees of the samples, run on the emulated NPU: one process and two."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from scripts.regen_samples import SAMPLES
from tests.forked import transplt_run

pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("samples_run")]

CLASSIFIER = ["--samples", "64", "-b", "16", "-j", "0", "--image-size", "16", "--amp"]
TEXT = "--samples 64 --workers 0 --width 32 --layers 1 --block 32 --batch-size 8 --epochs 1".split()


@pytest.fixture
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of one golden tree: running it leaves files behind."""
    return Path(shutil.copytree(SAMPLES / request.param / "expected", tmp_path / "project"))


def emulate(project: Path, options: list[str], *script: str) -> tuple[dict[str, Any], str]:
    """Run a script of `project` with `transplt run`: the report, and what was printed."""
    report = project.parent / "report.json"
    code, output, errors = transplt_run(["--report", str(report), *options, *script], project)
    assert report.exists(), output + errors
    told = json.loads(report.read_text(encoding="utf-8"))
    assert (code, told["verdict"], told["reasons"]) == (0, "runs", []), output + errors
    return told, output


@pytest.mark.parametrize("project", ["image_classifier"], indirect=True)
def test_image_classifier_trains_resumes_and_evaluates(project: Path) -> None:
    _, first = emulate(project, [], "train.py", "--epochs", "1", "--output", "run", "--prefetch", *CLASSIFIER)
    assert "epoch 0: train loss" in first
    result = json.loads((project / "run" / "result.json").read_text(encoding="utf-8"))
    assert result["device"] == "npu"

    _, second = emulate(
        project, [], "train.py", "--epochs", "2", "--output", "run", "--resume", "run/last.pt", *CLASSIFIER
    )
    assert "epoch 1: train loss" in second
    assert "epoch 0:" not in second

    _, evaluation = emulate(project, [], "evaluate.py", "--checkpoint", "run/best.pt", "--half")
    assert "run/best.pt: loss" in evaluation


@pytest.mark.parametrize("project", ["text_model"], indirect=True)
def test_text_model_trains_and_writes_text(project: Path) -> None:
    _, printed = emulate(project, [], "train.py", "--output", "run", "--bf16", *TEXT)
    assert "on 1 x npu" in printed
    _, text = emulate(project, [], "generate.py", "--checkpoint", "run/last.pt", "--count", "10")
    assert text.startswith("the ")


@pytest.mark.slow  # two processes run in every check in tests/prove/test_golden_samples.py
@pytest.mark.parametrize("project", ["text_model"], indirect=True)
def test_text_model_trains_with_two_processes(project: Path) -> None:
    """First under torchrun, then spawned by itself from the checkpoint of both ranks."""
    _, printed = emulate(project, ["--nproc", "2"], "train.py", "--output", "run", *TEXT)
    assert "on 2 x npu" in printed
    assert "rank 1: memory" in printed
    _, printed = emulate(
        project,
        [],
        "train.py",
        "--launcher",
        "spawn",
        "--nproc",
        "2",
        "--resume",
        "run/last.pt",
        "--output",
        "run",
        *TEXT,
    )
    assert "on 2 x npu" in printed
    assert "random state not restored" not in printed
