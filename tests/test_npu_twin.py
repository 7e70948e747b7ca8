"""A file for the NPU beside another one answers for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from transplt.faces.cli.main import main
from transplt.files.npu_twin import twins


@pytest.mark.parametrize(
    ("name", "twin"),
    [
        ("run.sh", "run_npu.sh"),
        ("run.sh", "run-npu.sh"),
        ("scripts/run.sh", "scripts/run_npu.sh"),
        ("train_gpu.sh", "train_npu.sh"),
        ("Dockerfile", "Dockerfile.npu"),
        ("requirements.txt", "requirements-npu.txt"),
        ("config.yaml", "config_ascend.yaml"),
    ],
)
def test_names_of_twins(name: str, twin: str) -> None:
    assert twin in twins(name)


@pytest.mark.parametrize("name", ["run_npu.sh", "ascend/../run-npu.sh"])
def test_a_file_for_the_npu_has_none(name: str) -> None:
    assert twins(name) == []


@pytest.mark.parametrize(
    ("beside", "left"),
    [("run_npu.sh", 0), ("npu.sh", 1), ("other/run_npu.sh", 1), ("run_cpu.sh", 1), ("run.npu.sh", 0)],
)
def test_what_it_answers_for_is_no_work(tmp_path: Path, beside: str, left: int) -> None:
    source = tmp_path / "demo"
    (source / beside).parent.mkdir(parents=True)
    (source / "run.sh").write_text("export NCCL_DEBUG=INFO\n")
    (source / beside).write_text("export ASCEND_RT_VISIBLE_DEVICES=0\n")
    done = CliRunner().invoke(main, ["-i", str(source), "-o", str(tmp_path / "out")])
    assert f", {left} finding{'s' * (not left)} for a person" in done.output
    (row,) = (tmp_path / "out" / "demo_msft" / "tokens.csv").read_text().splitlines()[1:]
    said = "ignored,NPU801,a file of its own for the NPU lies beside it"
    assert row.split(",", 4)[4] == said if not left else ",manual," in row
