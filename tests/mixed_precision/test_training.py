"""What the scaler does in migrated scripts: it survives checkpoints, and an overflow leaves out a step."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from scripts.regen_samples import SAMPLES
from tests.distributed.running import emulated, migrated

pytestmark = pytest.mark.torch

SCRIPT = textwrap.dedent("""\
    import os

    import torch
    import torch.nn as nn

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    first = 0
    if os.path.exists("last.pt"):
        checkpoint = torch.load("last.pt", map_location="cuda")
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        first = checkpoint["step"] + 1

    huge = int(os.environ.get("HUGE", "-1"))
    for step in range(first, first + 6):
        x = torch.ones(8, 4).cuda() * (1e30 if step == huge else 1.0)
        before = [p.detach().clone() for p in model.parameters()]
        optimizer.zero_grad()
        loss = (model(x).float() * x.mean()).pow(2).mean()
        loss.backward()
        optimizer.step()
        moved = any((a != b).any().item() for a, b in zip(before, model.parameters()))
        print(f"step {step}: moved {moved}")
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, "last.pt")
    """)


def folder_of(tmp_path: Path, *options: str) -> Path:
    """The migrated script; it also prints the scale behind each step."""
    source = tmp_path / "train.py"
    source.write_text(SCRIPT, encoding="utf-8")
    folder = migrated(source, tmp_path / "out", *options)
    script = folder / "train.py"
    text = script.read_text(encoding="utf-8")
    scale = text.replace('moved {moved}")', 'moved {moved} scale {scaler.get_scale():.0f}")')
    script.write_text(scale if "scaler" in text else text, encoding="utf-8")
    return folder


def scales(lines: list[str]) -> list[tuple[bool, float]]:
    rows = [line.split() for line in lines if line.startswith("step ")]
    return [(row[3] == "True", float(row[5])) for row in rows]


def test_an_overflow_leaves_out_the_step_and_lowers_the_scale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folder_of(tmp_path, "--amp", "native")
    monkeypatch.setenv("HUGE", "3")
    found = scales(emulated(folder, "train.py"))
    assert found[3] == (False, found[2][1] / 2)
    assert found[2][0] and found[4] == (True, found[3][1])


def test_the_scale_goes_on_from_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folder_of(tmp_path, "--amp", "native")
    monkeypatch.setenv("HUGE", "5")
    stopped = scales(emulated(folder, "train.py"))
    resumed = scales(emulated(folder, "train.py"))
    assert stopped[-1][1] == resumed[0][1] < 65536
    assert resumed[0][0]


def test_an_old_checkpoint_loads(tmp_path: Path) -> None:
    """What the script wrote before it had a scaler."""
    old = folder_of(tmp_path)
    emulated(old, "train.py")
    new = folder_of(tmp_path / "new", "--amp", "native") if (tmp_path / "new").mkdir() is None else old
    (new / "last.pt").write_bytes((old / "last.pt").read_bytes())
    lines = emulated(new, "train.py")
    assert [line.split(":")[0] for line in lines if line.startswith("step")] == [f"step {n}" for n in range(6, 12)]


@pytest.mark.slow
def test_a_static_scale_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folder_of(tmp_path, "--amp", "native", "--loss-scale", "1024")
    assert "GradScaler(init_scale=1024.0, dynamic=False)" in (folder / "train.py").read_text(encoding="utf-8")
    found = scales(emulated(folder, "train.py"))
    assert {scale for _, scale in found} == {1024.0}
    assert all(moved for moved, _ in found)


@pytest.mark.slow
def test_the_trainer_resumes_with_its_scaler(tmp_path: Path) -> None:
    folder = migrated(SAMPLES / "amp/trainer/cuda", tmp_path / "out", "--amp", "native")
    emulated(folder, "main.py", "--epochs", "2")
    lines = emulated(folder, "main.py", "--epochs", "4", "--resume", "run/last.pt")
    assert [line.split(":")[0] for line in lines if line.startswith("epoch")] == ["epoch 2", "epoch 3"]


@pytest.mark.slow
def test_the_scaler_works_with_fused_optimizers(tmp_path: Path) -> None:
    """`--tune` and `--amp` write around the same statements."""
    tune = "fused-optimizer,fused-clip"
    folder = migrated(SAMPLES / "amp/flat/cuda", tmp_path / "out", "--amp", "native", "--tune", tune)
    text = (folder / "train.py").read_text(encoding="utf-8")
    assert "torch_npu.optim.NpuFusedAdam(" in text and "scaler.unscale_(optimizer)" in text
    lines = [line for line in emulated(folder, "train.py") if line.startswith("step ")]
    assert float(lines[-1].split()[-1]) < float(lines[0].split()[-1])
