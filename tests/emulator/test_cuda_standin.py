"""The stand-in for a CUDA host: what a program for CUDA sees there, and that its numbers are the emulated NPU's."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import forked
from tests.processes import unmeasured
from transplt.proof.launch.runner import SITES

pytestmark = pytest.mark.torch
HERE = Path(__file__).parent
On = Callable[..., str]


@pytest.fixture
def on(tmp_path: Path) -> On:
    """on(host, source, nproc=0): the standard output of a program on "cuda", "npu" or "cpu"."""

    def run(host: str, source: str, nproc: int = 0, **variables: str) -> str:
        path = tmp_path / "program.py"
        path.write_text(source, encoding="utf-8")
        environment = {**unmeasured(), **variables}
        environment.pop("PYTHONPATH", None)
        if host == "cuda":
            environment["PYTHONPATH"] = str(SITES["cuda"])
        elif host == "npu":
            environment |= forked.npu_environment(tmp_path, random="cpu")
        done = forked.run(path, (), environment, tmp_path, nproc)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def program(name: str) -> str:
    return (HERE / "programs" / name).read_text(encoding="utf-8")


def for_cuda(name: str) -> str:
    """A program of the emulated NPU's tests, in the words of CUDA."""
    text = re.sub(r"(?m)^import torch_npu.*$", "", program(name))
    for old, new in (("hccl", "nccl"), ("npu_emulator", "npu_emulator_"), ("npu", "cuda"), ("NPU", "CUDA")):
        text = text.replace(old, new)
    return text


def test_a_program_for_cuda_sees_a_cuda_host(on: On) -> None:
    assert "cuda host: ok" in on("cuda", program("cuda_host.py"))


def test_lazy_modules_and_the_profiler_of_autograd(on: On) -> None:
    assert "lazy and profiled: ok" in on("cuda", for_cuda("lazy_and_profiled.py"))


def test_behaviours(on: On) -> None:
    # They ask something of an NPU alone.
    asked_of_npus = "load_cuda_checkpoint map_location_that_maps_nothing mem_api misc_ops profiler"
    assert f"probes: 102/107; failed: {asked_of_npus}\n" in on("cuda", for_cuda("probes.py"))


def test_collectives_on_two_ranks(on: On) -> None:
    out = on("cuda", for_cuda("collectives.py"), nproc=2)
    # gloo's message about a tensor on the CPU is another one; nccl refuses it too.
    assert "ddp rank 0: 26/27; failed: cpu tensor" in out and "ddp rank 1: 26/27; failed: cpu tensor" in out


TRAINING = """
import torch
from torch import nn

torch.manual_seed(0)
device = torch.device("DEVICE")
model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.2), nn.Flatten())
model = model.append(nn.Linear(144, 3)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scaler = torch.amp.GradScaler("DEVICE")
for step in range(5):
    x, y = torch.randn(8, 1, 8, 8).to(device), torch.randint(0, 3, (8,)).to(device)
    x = x + 0.1 * torch.randn(8, 1, 8, 8, device=device)
    with torch.autocast("DEVICE", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(x).float(), y)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(loss.item())
"""


def test_numbers_are_those_of_the_emulated_npu(on: On, tmp_path: Path) -> None:
    (tmp_path / "drawn.json").write_text('{"random": "cpu"}')
    cuda = on("cuda", TRAINING.replace("DEVICE", "cuda"), TRANSPLT_EMULATOR=str(tmp_path / "drawn.json"))
    assert cuda == on("npu", TRAINING.replace("DEVICE", "npu")) and cuda.count("\n") == 5


@pytest.mark.parametrize(("visible", "count"), [("0,2", 2), ("", 0), ("3", 1), ("-1", 0), ("0,9,1", 1)])
def test_hidden_cards(on: On, visible: str, count: int) -> None:
    source = "import torch\nprint(torch.cuda.device_count(), torch.cuda.is_available())"
    assert on("cuda", source, CUDA_VISIBLE_DEVICES=visible) == f"{count} {bool(count)}\n"
    # By the script, which loads torch_npu behind that: its environment would need a warm process of its own.
    source = f"import os\nos.environ['ASCEND_RT_VISIBLE_DEVICES'] = {visible!r}\n" + source.replace("cuda", "npu")
    assert on("npu", source) == f"{count} {bool(count)}\n"


def test_without_cards_nothing_is_on_cuda(on: On) -> None:
    source = "import torch\ntry:\n    torch.zeros(1, device='cuda')\nexcept RuntimeError as error:\n    print(error)"
    assert on("cuda", source, CUDA_VISIBLE_DEVICES="") == "No CUDA GPUs are available\n"
