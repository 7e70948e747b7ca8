"""Ranks on the vendor's torch_npu that will not meet: which one, at which line, in which call, long before HCCL's own
half hour."""

from __future__ import annotations

import time
from typing import Any

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.card, pytest.mark.xdist_group("ranks")]

HEAD = """\
import os
import sys
import torch
import torch_npu
import torch.distributed as dist
dist.init_process_group("hccl")
rank = dist.get_rank()
torch.npu.set_device(rank)
x = torch.ones(3).npu()
dist.all_reduce(x)
dist.all_reduce(x[: 1 + rank].clone()) if "shapes" in sys.argv else None
dist.recv(x, 1) if "apart" in sys.argv and rank == 0 else None
sys.exit(0) if "left" in sys.argv and rank else None
int("planted") if "raises" in sys.argv and rank else None
dist.all_reduce(x)
dist.destroy_process_group()
"""


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("left", "rank 0: train.py:15: HcclAllReduce of 3 float32 (sum): another rank has left"),
        pytest.param("raises", "rank 1: train.py:14: ValueError: invalid literal", marks=pytest.mark.slow),
        pytest.param(
            "shapes", "rank 0: HcclAllReduce of 1 float32 (sum); rank 1: HcclAllReduce of 2 float32 (sum)",
            marks=pytest.mark.slow,
        ),
        (
            "apart",
            "the ranks wait for one another: rank 0: the beginning of a communicator of 2 at train.py:12; rank 1: "
            "HcclAllReduce of 3 float32 (sum) at train.py:15",
        ),
    ],
)  # fmt: skip
def test_what_is_told_of_ranks_that_wait(transplt_run: Any, how: str, told: str) -> None:
    begun = time.monotonic()
    code, report, err = transplt_run(HEAD, how, options=["--nproc", "2"])
    assert (code, report["verdict"]) == (1, "stops")
    assert told in report["sentence"], err
    assert time.monotonic() - begun < 100


def test_ranks_that_are_slow_are_waited_for(transplt_run: Any) -> None:
    source = HEAD.replace("dist.destroy", "import time; time.sleep(9 * rank); dist.all_reduce(x); dist.destroy")
    code, report, _ = transplt_run(source, options=["--nproc", "2"])
    assert (code, report["verdict"]) == (0, "runs")
