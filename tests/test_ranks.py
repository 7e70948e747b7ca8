"""The harness itself: ranks that drift apart, steps that one rank makes alone, and hangs are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ranks import differences, run_ranks

pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("ranks")]

HEAD = """\
import os
import torch
import torch_npu
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

torch.npu.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group(backend="hccl")
torch.manual_seed(0)
model = torch.nn.Linear(2, 1).npu()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.ones(4, 2).npu() * (1 + dist.get_rank())
"""
STEP = "model(x).sum().backward(); optimizer.step()\n"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (f"model = DistributedDataParallel(model)\n{STEP}{STEP}", ""),
        (STEP, "optimizer 0, ranks 0 and 1: parameters differ after step 1"),
        (f"x = torch.ones(4, 2).npu()\n{STEP}if dist.get_rank() == 0: {STEP}", "ranks 0 and 1: 2 and 1 steps"),
        ("if dist.get_rank() == 1:\n    raise ValueError('only here')\ndist.barrier()\n", "ValueError: only here"),
        pytest.param(
            "if dist.get_rank() == 0:\n    dist.all_reduce(x)\n    print(x.sum().item())\n",
            "rank 1 hangs",
            marks=pytest.mark.slow,
        ),
    ],
)  # fmt: skip
def test_what_is_told(tmp_path: Path, body: str, told: str) -> None:
    (tmp_path / "train.py").write_text(HEAD + body + "dist.barrier()\n", encoding="utf-8")
    faults = run_ranks(tmp_path, "train.py", world=2, timeout=45).faults()
    assert bool(faults) is bool(told)
    assert told in "\n".join(faults)


EVEN = """\
model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 1)).npu()
model = DistributedDataParallel(model)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
x = torch.arange(16.0).reshape(8, 2).chunk(dist.get_world_size())[dist.get_rank()].npu()
for _ in range(3):
    optimizer.zero_grad()
    loss = model(x + torch.randn(len(x), 2).npu()).pow(2).mean()
    {0}
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("backward", "same"),
    [
        ("loss.backward()", True),
        ("(loss * dist.get_world_size()).backward()", False),  # gradients that are summed up, not averaged
    ],
)
def test_one_process_and_two_with_norms_and_noise(tmp_path: Path, backward: str, same: bool) -> None:
    (tmp_path / "train.py").write_text(HEAD + EVEN.format(backward), encoding="utf-8")
    one, two = (run_ranks(tmp_path, "train.py", world=world, plain=True, even=True, timeout=45) for world in (1, 2))
    assert not one.faults() and not two.faults()
    assert (differences(one, two) == []) is same
