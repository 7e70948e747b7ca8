"""Ranks on the vendor's torch_npu that will not meet: which one, at which line, in which call, long before HCCL's own
half hour."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.ranks import free_port

pytestmark = [pytest.mark.torch, pytest.mark.card, pytest.mark.xdist_group("ranks")]

HEAD = """\
import os, signal
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
os.kill(os.getpid(), signal.SIGKILL) if "killed" in sys.argv and rank else None
os._exit(3) if "gone" in sys.argv and rank else None
dist.all_reduce(x)
dist.destroy_process_group()
"""


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("left", "rank 0: train.py:17: HcclAllReduce of 3 float32 (sum): another rank has left"),
        (
            "killed",
            "rank 1 was killed, last seen at train.py:10 (HcclAllReduce of 3 float32 (sum)); rank 0 waits in "
            "HcclAllReduce of 3 float32 (sum) at train.py:17",
        ),
        pytest.param(
            "gone",
            "rank 1: train.py:16: os._exit(3): it ended with exit code 1; rank 0 waits in HcclAllReduce of 3 float32 "
            "(sum) at train.py:17",
            marks=pytest.mark.slow,
        ),
        pytest.param("raises", "rank 1: train.py:14: ValueError: invalid literal", marks=pytest.mark.slow),
        pytest.param(
            "shapes",
            "rank 0: HcclAllReduce of 1 float32 (sum) at train.py:11; rank 1: HcclAllReduce of 2 float32 (sum) at "
            "train.py:11",
            marks=pytest.mark.slow,
        ),
        (
            "apart",
            "the ranks wait for one another: rank 0: the beginning of a communicator of 2 at train.py:12; rank 1: "
            "HcclAllReduce of 3 float32 (sum) at train.py:17",
        ),
    ],
)  # fmt: skip
def test_what_is_told_of_ranks_that_wait(transplt_run: Any, how: str, told: str) -> None:
    begun = time.monotonic()
    code, report, err = transplt_run(HEAD, how, options=["--nproc", "2"])
    assert (code, report["verdict"]) == (1, "stops")
    assert told in report["sentence"], err
    assert time.monotonic() - begun < 100


def test_ranks_that_are_slow_are_waited_for_and_named(transplt_run: Any) -> None:
    late = "import time; time.sleep(9 * rank); dist.all_reduce(x); dist.destroy"
    code, report, err = transplt_run(HEAD.replace("dist.destroy", late), options=["--nproc", "2"])
    assert (code, report["verdict"]) == (0, "runs")
    told = (
        "rank 0 waits in HcclAllReduce of 3 float32 (sum) at train.py:18; rank 1 does not arrive: it is at train.py:18"
    )
    assert f"transplt run: {told}\n" in err
    assert f"during the run: {told}" in report["notes"]


SPAWNS = """\
import os, sys
import torch.multiprocessing as mp

def train(rank):
    os.environ.update(RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[1])
    sys.argv.append("killed")
    exec(compile(open("train.py").read(), "train.py", "exec"), {})

if __name__ == "__main__":
    mp.spawn(train, nprocs=2)
"""
SHELL = """\
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$1 WORLD_SIZE=2
for rank in 0 1; do RANK=$rank python train.py raises & done
wait
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "text", "told"),
    [
        (
            "spawns.py", SPAWNS,
            "rank 1 ended by signal SIGKILL (probably out of memory), last seen at train.py:10",
        ),
        (
            "launch.sh", SHELL,
            "rank 1: train.py:14: ValueError: invalid literal for int() with base 10: 'planted'; what started the "
            "ranks ended with exit code 0",
        ),
    ],
)  # fmt: skip
def test_whoever_starts_the_ranks(transplt_run: Any, tmp_path: Path, script: str, text: str, told: str) -> None:
    """`wait` of a shell ends with 0, whatever became of the ranks."""
    (tmp_path / "train.py").write_text(HEAD, encoding="utf-8")
    (tmp_path / script).write_text(text, encoding="utf-8")
    code, report, err = transplt_run(tmp_path / script, str(free_port()))
    assert (code, report["verdict"]) == (1, "stops")
    assert told in report["sentence"], err
