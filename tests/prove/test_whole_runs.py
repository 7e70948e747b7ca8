"""What programs do that a proof must not hinder or mistake: each is run, as the original and as its right port."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.planted.planting import prove, write_port

# Words get their numbers in the order of a set, which Python draws anew for every process.
_SET = """
import torch

torch.manual_seed(1)
numbers = {word: number for number, word in enumerate(set("the cat sat on a mat and so did dogs".split()))}
model = torch.nn.Embedding(16, 4).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for word in ("cat", "mat", "dogs"):
    loss = model(torch.tensor([numbers[word]]).cuda()).pow(2).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
# No second run gives its files these names.
_NAMED = """
import uuid

import torch

torch.manual_seed(1)
name = {chance}
model = torch.nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(2):
    loss = model(torch.randn(6, 4).cuda()).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{{name}} loss {{loss.item():.4f}}")
    torch.save(model.state_dict(), f"{{name}}.pt")
"""
# The whole module is saved, with its hooks.
_WHOLE = """
import os

import torch
import torch.distributed as dist

torch.manual_seed(1)
dist.init_process_group("nccl")
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1).cuda(), device_ids=[rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    loss = model(torch.full((2, 4), 1.0 + step + rank).cuda()).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
if rank == 0:
    torch.save(model.module, "model.pt")
dist.destroy_process_group()
"""
_DEFAULT_DEVICE = """
import torch

torch.set_default_device("cuda")
torch.manual_seed(1)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    loss = model(torch.rand(2, 4) + torch.randn(2, 4) + torch.randperm(4)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
# PyTorch ends with SIGSEGV a process that leaves a profiler open, and `--steps` ends the program in between.
_PROFILED = """
import torch

torch.manual_seed(1)
model = torch.nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
profiler = torch.autograd.profiler.profile()
profiler.__enter__()
for step in range(9):
    loss = model(torch.full((2, 4), 1.0 + step).cuda()).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
profiler.__exit__(None, None, None)
"""


@pytest.mark.torch
@pytest.mark.parametrize(
    ("text", "nproc"),
    [
        pytest.param(_SET, "1", id="order of a set"),
        pytest.param(_NAMED.format(chance="uuid.uuid4()"), "1", id="files named by a UUID"),
        pytest.param(_NAMED.format(chance="uuid.uuid4().hex[:6]"), "1", id="files named by chance"),
        pytest.param(_PROFILED, "1", id="a profiler is open at the last step"),
        pytest.param(_DEFAULT_DEVICE, "1", id="a default device"),
        pytest.param(_WHOLE, "2", id="a whole module", marks=pytest.mark.slow),
    ],
)
def test_a_right_port_is_equal(text: str, nproc: str, tmp_path: Path) -> None:
    port = text.replace("import torch\n", "import torch\nimport torch_npu\n", 1)
    port = port.replace("cuda", "npu").replace("nccl", "hccl")
    for name, written in (("original", text), ("migrated", port)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "main.py").write_text(written, encoding="utf-8")
    found = prove(tmp_path / "original", tmp_path / "migrated", tmp_path, nproc, "--steps", "3")
    assert found.verdict == "equal", found.output


# With O2 apex makes the weights float16, and gives the optimizer copies of them in float32.
_STEPS = """
import torch

torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 1)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    loss = model(torch.randn(6, 4).cuda()).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.torch
@pytest.mark.parametrize(("level", "verdict"), [("O2", "equal"), ("O0", "differs")])
def test_the_types_in_which_apex_trains(level: str, verdict: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(_STEPS, encoding="utf-8")
    port = write_port(tmp_path / "program.py", "apex", tmp_path)
    text = (port / "main.py").read_text(encoding="utf-8")
    assert text.count('"O2"') == 1
    (port / "main.py").write_text(text.replace('"O2"', f'"{level}"').replace("combine_grad=True", ""), encoding="utf-8")
    found = prove(tmp_path / "original", port, tmp_path, "1")
    assert found.verdict == verdict, found.output
    assert ("nothing runs in half precision" in found.output) == (level == "O0")


# A rank has half of the batches, so its schedule is over in half of the steps.
_SCHEDULED = """
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
train_set = TensorDataset(torch.randn(32, 4), torch.randn(32, 1))
train_loader = DataLoader(train_set, batch_size=4, shuffle=True)
model = torch.nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, epochs=1, steps_per_epoch=len(train_loader))
for x, y in train_loader:
    loss = (model(x.cuda()) - y.cuda()).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
"""


@pytest.mark.torch
def test_a_schedule_of_the_length_of_a_loader(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(_SCHEDULED, encoding="utf-8")
    found = prove(tmp_path / "original", write_port(program, "distributed", tmp_path), tmp_path, "2")
    assert found.verdict == "equal", found.output
    assert "one process, and 2 with the same global batches" in found.output and "4 steps compared" in found.output


# What is wrong in the port, with the line that has to be named: `(old, new)`.
_AVERAGED = """
import torch

torch.manual_seed(1)
scaler = torch.amp.GradScaler("cuda", init_scale=8.0)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1)).cuda()
average = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1)).cuda()
average.load_state_dict(model.state_dict())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    for group in optimizer.param_groups:
        group["lr"] = 0.1 / (step + 1)
    with torch.autocast("cuda", enabled=False):
        loss = model(torch.randn(6, 4).cuda()).pow(2).mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    with torch.no_grad():
        for mine, theirs in zip(average.parameters(), model.parameters()):
            mine.mul_(0.5).add_(theirs, alpha=0.5)
"""
_BY_HAND = """
import torch

torch.manual_seed(1)
model = torch.nn.Linear(4, 1).cuda()
for step in range(3):
    loss = model(torch.full((2, 4), 1.0 + step).cuda()).pow(2).mean()
    model.zero_grad()
    loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 0.1 * parameter.grad
    print("loss", loss.item())
"""


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        pytest.param(_AVERAGED, "mul_(0.5)", "mul_(0.6)", id="an average in a network of the same class"),
        pytest.param(_AVERAGED, "0.1 / (step", "0.2 / (step", id="a learning rate that is assigned"),
        pytest.param(_AVERAGED, "scaler.scale(loss)", "scaler.scale(loss.half())", id="a loss in half precision"),
        pytest.param(_BY_HAND, "0.1 * ", "0.2 * ", id="no optimizer"),
    ],
)
def test_the_line_of_a_mistake(text: str, old: str, new: str, tmp_path: Path) -> None:
    port = text.replace("import torch\n", "import torch\nimport torch_npu\n", 1).replace("cuda", "npu")
    for name, written in (("original", text), ("migrated", port.replace(old, new))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "main.py").write_text(written, encoding="utf-8")
    found = prove(tmp_path / "original", tmp_path / "migrated", tmp_path, "1", "--steps", "3")
    line = next(number for number, line in enumerate(port.splitlines(), 1) if old in line)
    assert (found.verdict, line in found.lines) == ("differs", True), found.output


# A GAN: each rank draws its own noise, by the global generator of numpy or by `random`, and takes one step.
_NOISE = """
import os
import random

import numpy as np
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

torch.manual_seed(1)
{begin}
data = TensorDataset(torch.randn(8, 4))
maker = torch.nn.Sequential(torch.nn.Linear(3, 6), torch.nn.BatchNorm1d(6), torch.nn.Linear(6, 4)).cuda()
{wrap}
optimizer = torch.optim.SGD(maker.parameters(), lr=0.1)
for real, in DataLoader(data, batch_size={batch}{sampler}):
    noise = torch.tensor({draw}, dtype=torch.float32).view(len(real), 3)
    loss = (maker(noise.cuda()) - real.cuda()).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
{end}
"""
_ONE = {"begin": "", "wrap": "", "batch": 8, "sampler": ", shuffle=True", "end": ""}
_RANKS = {
    "begin": 'dist.init_process_group("nccl")\nrank = int(os.environ["LOCAL_RANK"])\ntorch.cuda.set_device(rank)',
    "wrap": "maker = torch.nn.parallel.DistributedDataParallel(maker, device_ids=[rank])",
    "batch": 4,
    "sampler": ", sampler=DistributedSampler(data)",
    "end": "dist.destroy_process_group()",
}


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize(
    "draw", ["np.random.normal(0, 1, (len(real), 3))", "[random.random() for _ in range(len(real) * 3)]"]
)
def test_noise_that_each_rank_draws_is_no_difference(draw: str, tmp_path: Path) -> None:
    port = _NOISE.format(draw=draw, **_RANKS).replace("import torch\n", "import torch\nimport torch_npu\n", 1)
    port = port.replace("cuda", "npu").replace("nccl", "hccl")
    for name, written in (("original", _NOISE.format(draw=draw, **_ONE)), ("migrated", port)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "main.py").write_text(written, encoding="utf-8")
    found = prove(tmp_path / "original", tmp_path / "migrated", tmp_path, "1,2", "--steps", "3")
    assert found.verdict == "equal", found.output


_BY_LENGTH = """
import torch
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

data = TensorDataset(torch.arange(48.0).view(12, 4) / 48)
loader = DataLoader(data, batch_size=2, sampler=DistributedSampler(data, num_replicas=1, rank=0))
model = torch.nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step, (x,) in enumerate(loader):
    optimizer.param_groups[0]["lr"] = 0.1 * (1 + step) / len(loader)
    loss = model(x.cuda()).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.torch
def test_a_loader_in_the_originals_order_is_as_long_as_before(tmp_path: Path) -> None:
    """Both are stopped after two steps of six: the order that is given ends there."""
    port = _BY_LENGTH.replace("import torch\n", "import torch\nimport torch_npu\n", 1).replace("cuda", "npu")
    for name, written in (("original", _BY_LENGTH), ("migrated", port)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "main.py").write_text(written, encoding="utf-8")
    found = prove(tmp_path / "original", tmp_path / "migrated", tmp_path, "1", "--steps", "2")
    assert found.verdict == "equal", found.output
