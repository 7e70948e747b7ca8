"""What apex does in migrated scripts: its state survives checkpoints, an overflow leaves out a step, ranks agree."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.distributed.running import emulated, migrated, transplt

pytestmark = [pytest.mark.torch, pytest.mark.slow]

SCRIPT = textwrap.dedent("""\
    import os

    import torch
    import torch.nn as nn

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    first = 0
    if os.path.exists("last.pt"):
        checkpoint = torch.load("last.pt", map_location="cuda")
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        first = checkpoint["step"] + 1

    huge = int(os.environ.get("HUGE", "-1"))
    for step in range(first, first + 5):
        x = torch.ones(8, 4).cuda() / 8
        before = [p.detach().clone() for p in model.parameters()]
        optimizer.zero_grad()
        loss = model(x).pow(2).mean() * (1e30 if step == huge else 0.1)
        loss.backward()
        optimizer.step()
        moved = any((a != b).any().item() for a, b in zip(before, model.parameters()))
        print(f"step {step}: moved {moved}")
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, "last.pt")
    """)


def folder_of(tmp_path: Path, *options: str) -> Path:
    """The migrated script; with apex it also prints the scale behind each step."""
    tmp_path.mkdir(exist_ok=True)
    source = tmp_path / "train.py"
    source.write_text(SCRIPT, encoding="utf-8")
    folder = migrated(source, tmp_path / "out", *options)
    script = folder / "train.py"
    text = script.read_text(encoding="utf-8")
    scale = ' scale {amp.state_dict()[\'loss_scaler0\'][\'loss_scale\']:.0f}")'
    if options:
        assert "amp.initialize(" in text
        script.write_text(text.replace('moved {moved}")', f"moved {{moved}}{scale}"), encoding="utf-8")
    return folder


def scales(lines: list[str]) -> list[tuple[bool, float]]:
    rows = [line.split() for line in lines if line.startswith("step ")]
    return [(row[3] == "True", float(row[5])) for row in rows]


@pytest.mark.parametrize("level", ["O1", "O2"])
def test_an_overflow_leaves_out_the_step_and_lowers_the_scale(
    level: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folder_of(tmp_path, "--amp", "apex", "--opt-level", level)
    monkeypatch.setenv("HUGE", "2")
    found = scales(emulated(folder, "train.py"))
    assert found[1] == (True, 65536) and found[2] == (False, 32768) and found[3] == (True, 32768)
    # the scale goes on from the checkpoint
    monkeypatch.setenv("HUGE", "-1")
    assert scales(emulated(folder, "train.py"))[0] == (True, 32768)


def test_an_old_checkpoint_loads(tmp_path: Path) -> None:
    """What the script wrote before it had amp."""
    old = folder_of(tmp_path / "old")
    emulated(old, "train.py")
    new = folder_of(tmp_path / "new", "--amp", "apex")
    (new / "last.pt").write_bytes((old / "last.pt").read_bytes())
    lines = emulated(new, "train.py")
    assert [line.split(":")[0] for line in lines if line.startswith("step")] == [f"step {n}" for n in range(5, 10)]


MANY = textwrap.dedent("""\
    import os

    import torch
    import torch.distributed as dist
    import torch.nn as nn

    dist.init_process_group("nccl")
    rank = dist.get_rank()
    torch.cuda.set_device(rank)
    torch.manual_seed(rank)
    model = nn.Linear(4, 1).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(10):
        x = torch.full((8, 4), float(rank + 1)).cuda()
        loss = model(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    weights = [torch.zeros(1, 4).cuda() for _ in range(dist.get_world_size())]
    dist.all_gather(weights, model.weight.detach().float())
    assert all(torch.equal(weights[0], other) for other in weights)
    print("alike", loss.item() < 5)
    dist.destroy_process_group()
    """)


WRAPPED = """\
if dist.is_initialized():
    model = nn.parallel.DistributedDataParallel(model, device_ids=[rank])
"""


@pytest.mark.parametrize(("wrapper", "when"), [("", "True"), (WRAPPED, "torch.distributed.is_initialized()")])
def test_combine_ddp_keeps_the_ranks_alike(tmp_path: Path, wrapper: str, when: str) -> None:
    source = tmp_path / "train.py"
    source.write_text(MANY.replace("optimizer = ", f"{wrapper}optimizer = ", 1), encoding="utf-8")
    folder = migrated(source, tmp_path / "out", "--amp", "apex", "--loss-scale", "16", "--combine-ddp")
    text = (folder / "train.py").read_text(encoding="utf-8")
    assert f"combine_ddp={when}" in text and "DistributedDataParallel" not in text
    done = transplt("run", "--nproc", "2", "train.py", cwd=folder)
    assert done.stdout.count("alike") == 2, done.stdout + done.stderr
