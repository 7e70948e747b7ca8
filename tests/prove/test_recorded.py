"""What a run records of steps that compute their gradients themselves, and of networks that no optimizer has."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests import forked
from transplt.proof.launch.options import RunOptions, Trace
from transplt.proof.prove.loaders import batches
from transplt.proof.prove.projects import Project
from transplt.proof.prove.runs import Replay, Runner, at_once
from transplt.proof.prove.training import Place

_PROGRAM = """
import torch

teacher, student, idle = (torch.nn.Linear(4, 1).cuda() for _ in range(3))
count = sum(each.numel() for net in (teacher, student, idle) for each in net.parameters())
optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
for step in range(2):
    def closure():
        x = torch.ones(2, 4).cuda()
        with torch.no_grad():
            wanted = teacher(x)
        loss = (student(x) - wanted).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        return loss
    optimizer.step({given})
"""


@pytest.mark.torch
@pytest.mark.parametrize("given", ["closure", "closure=closure"])
def test_steps_with_a_closure(given: str, tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(_PROGRAM.format(given=given), encoding="utf-8")
    options = RunOptions("main.py", (), sys.executable, random="cpu", timeout=100.0, trace=Trace(), threads=1)
    training = Runner(Project(tmp_path, "main.py"), options, "cuda", warm=forked.warm()).run().first
    assert training is not None
    first, second = training.steps
    # Each step has the gradients that its own closure computed.
    assert all(gradient is not None and gradient[0] > 0 for gradient in first.gradients)
    assert first.gradients != second.gradients
    made = training.optimizers[0]
    assert made.names == ["Linear#2.weight", "Linear#2.bias"]
    assert sorted(made.others) == ["Linear.bias", "Linear.weight"]  # the teacher's; the idle one has computed nothing


_TEACHER = """
import copy
import torch

student = torch.nn.Linear(4, 1)
{wrapped}
teacher = copy.deepcopy(getattr(student, "module", student))
for each in teacher.parameters():
    each.requires_grad = False
optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
student(torch.ones(2, 4)).sum().backward()
optimizer.step()
"""
_WRAPPED = """
torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
student = torch.nn.parallel.DistributedDataParallel(student)
"""


@pytest.mark.torch
@pytest.mark.parametrize("wrapped", ["", _WRAPPED])
def test_a_wrapper_asks_nobody_for_parameters_first(wrapped: str, tmp_path: Path) -> None:
    """The teacher is asked first, in a port with a wrapper as in an original without one."""
    (tmp_path / "main.py").write_text(_TEACHER.format(wrapped=wrapped), encoding="utf-8")
    options = RunOptions("main.py", (), sys.executable, random="cpu", timeout=100.0, trace=Trace(), threads=1)
    training = Runner(Project(tmp_path, "main.py"), options, "cuda", warm=forked.warm()).run().first
    assert training is not None
    assert training.optimizers[0].names == ["Linear#2.weight", "Linear#2.bias"]


_LOADED = """
import torch

student = torch.nn.Sequential(torch.nn.Linear(4, 1))
target = torch.nn.Sequential(torch.nn.Linear(4, 1))
target.load_state_dict(student.state_dict())
student[0].load_state_dict(target[0].state_dict())
optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
x = torch.ones(2, 4)
(student(x) - target(x).detach()).sum().backward()
optimizer.step()
"""


@pytest.mark.torch
def test_a_network_is_known_by_the_state_that_it_is_given(tmp_path: Path) -> None:
    """A target that nobody asks for its parameters; not a part of another one."""
    (tmp_path / "main.py").write_text(_LOADED, encoding="utf-8")
    options = RunOptions("main.py", (), sys.executable, random="cpu", timeout=100.0, trace=Trace(), threads=1)
    training = Runner(Project(tmp_path, "main.py"), options, "cuda", warm=forked.warm()).run().first
    assert training is not None
    made = training.optimizers[0]
    assert made.names == ["Sequential.0.weight", "Sequential.0.bias"]
    assert sorted(made.others) == ["Sequential#2.0.bias", "Sequential#2.0.weight"]
    assert {*training.final} == {*made.names, *made.others}


_DRAWS = """
import torch

for draw in (
    lambda dtype: torch.randn(6, dtype=dtype),
    lambda dtype: torch.rand_like(torch.ones(6, dtype=dtype)),
    lambda dtype: torch.randn_like(torch.ones(6), dtype=dtype),
    lambda dtype: torch.empty(6, dtype=dtype).normal_(1, 2),
    lambda dtype: torch.empty(6, dtype=dtype).cuda().uniform_(),
):
    numbers = []
    for dtype in (torch.float32, torch.bfloat16):
        torch.manual_seed(3)
        numbers.append(draw(dtype).cpu())
    assert numbers[1].dtype == torch.bfloat16
    assert torch.equal(numbers[0].bfloat16(), numbers[1])
assert torch.randn(2, dtype=torch.float16, requires_grad=True).is_leaf
print("acc", 1.0)
"""


@pytest.mark.torch
def test_half_precision_draws_what_float32_draws(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(_DRAWS, encoding="utf-8")
    options = RunOptions("main.py", (), sys.executable, random="cpu", timeout=100.0, trace=Trace(), threads=1)
    run = Runner(Project(tmp_path, "main.py"), options, "cuda", warm=forked.warm()).run()
    assert run.stop is None


_ALONE = """
import os
import time

where = os.environ.get("MASTER_PORT", "29500")
os.close(os.open({place!r}, os.O_CREAT | os.O_EXCL))
time.sleep(1)
os.unlink({place!r})
"""


@pytest.mark.torch
def test_programs_that_name_a_port_run_one_after_the_other(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "main.py").write_text(_ALONE.format(place=str(tmp_path / "port")), encoding="utf-8")
    options = RunOptions("main.py", (), sys.executable, random="cpu", timeout=100.0, trace=Trace(), threads=1)
    run = Runner(Project(tmp_path / "project", "main.py"), options, "cuda", warm=forked.warm()).run
    run()  # what forks them is there: the next two begin at once
    assert [each.stop for each in at_once(run, run)] == [None, None]


_HELPED = """
import torch
import npu_port

net = torch.nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
npu_port.own_draws()
loss = npu_port.average(net(torch.ones(2, 4).cuda())).mean()
loss.backward()
optimizer.step()
"""
_HELPER = """
import torch


def own_draws():
    torch.manual_seed(7)


def average(value):
    return value * 1.0
"""


@pytest.mark.torch
def test_what_the_helper_of_a_port_does_is_told_of_the_line_that_calls_it(tmp_path: Path) -> None:
    for name, text in (("main.py", _HELPED), ("npu_port.py", _HELPER)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    options = RunOptions("main.py", (), sys.executable, random="cpu", timeout=100.0, trace=Trace(), threads=1)
    training = Runner(Project(tmp_path, "main.py"), options, "cuda", warm=forked.warm()).run(detail=1).first
    assert training is not None
    assert "npu_port.py" not in {event.place.path for event in training.events if event.place is not None}
    helped = {(event.kind, event.place) for event in training.events if event.fields.get("helper")}
    assert helped == {("seed", Place("main.py", 7)), ("op", Place("main.py", 8))}
    # The network and the mean of the same line are the program's own.
    assert {event.fields["name"] for event in training.of("op") if not event.fields.get("helper")} >= {"linear", "mean"}


_PASSES = """
import torch

data = torch.utils.data.TensorDataset(torch.arange(4.0).reshape(4, 1))
def made():
    return torch.utils.data.DataLoader({data}, batch_size=2, {how})
loader = made()
model = torch.nn.Linear(1, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for (x,) in {loader}:
        model(x.cuda()).sum().backward()
        optimizer.step()
"""


@pytest.mark.torch
@pytest.mark.parametrize(
    ("data", "how", "loader"),
    [
        ("data", "num_workers=0", "loader"),
        ("list(data)", "num_workers=0", "loader"),
        ("list(data)", "num_workers=0", "made()"),
        ("data", "num_workers=1", "loader"),
        ("data", "num_workers=1, persistent_workers=True", "loader"),
    ],
)
def test_each_pass_has_its_own_batches(data: str, how: str, loader: str, tmp_path: Path) -> None:
    """Also where the workers, and with them the iterator, stay from pass to pass; and of a list, which each may make
    anew."""
    (tmp_path / "main.py").write_text(_PASSES.format(data=data, how=how, loader=loader), encoding="utf-8")
    options = RunOptions("main.py", (), sys.executable, random="cpu", timeout=100.0, trace=Trace(), threads=1)
    training = Runner(Project(tmp_path, "main.py"), options, "cuda", warm=forked.warm()).run().first
    assert training is not None
    assert batches(training) == {(0, 0): [[0, 1], [2, 3]], (0, 1): [[0, 1], [2, 3]]}


_CHOSEN = """
import random
import torch
from torch.utils.data import DataLoader, DistributedSampler, Subset, TensorDataset

data = TensorDataset(torch.arange(6.0).reshape(6, 1))
order = [5, 3, 1, 0]
random.shuffle([0, 1])
chosen = Subset(data, order)
sampler = DistributedSampler(chosen, 1, 0, shuffle=False)
loader = DataLoader(chosen, batch_size=2, sampler=sampler)
torch.manual_seed(7)
drawn = torch.rand(1, generator=torch.Generator().manual_seed(5))
model = torch.nn.Linear(1, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=float(drawn))
for (x,) in loader:
    model(x.cuda()).sum().backward()
    optimizer.step()
"""


@pytest.mark.torch
def test_a_subset_counts_in_the_data_set_that_it_is_of(tmp_path: Path) -> None:
    """What is replayed is given by the same numbers; another data set keeps its own order."""
    (tmp_path / "main.py").write_text(_CHOSEN, encoding="utf-8")
    options = RunOptions("main.py", (), sys.executable, random="cpu", timeout=100.0, trace=Trace(), threads=1)
    runner = Runner(Project(tmp_path, "main.py"), options, "cuda", warm=forked.warm())
    given = [{}, {"0.0": [[0, 1], [3, 5]]}, {"0.0": [[0, 1], [3, 4]]}]
    runs = [runner.run(replay=Replay(order, every=False)).first for order in given]
    assert [batches(run)[0, 0] for run in runs if run is not None] == [
        [[5, 3], [1, 0]],
        [[0, 1], [3, 5]],
        [[5, 3], [1, 0]],
    ]
    assert runs[0] is not None
    loader = runs[0].of("loader")[0].fields
    assert (loader["size"], loader["whole"], loader["subset"]) == (4, 6, Place("main.py", 8))
    assert (loader["sampled"], loader["made"]) == (Place("main.py", 10), Place("main.py", 11))


@pytest.mark.torch
def test_seeds_and_generators_that_only_a_port_has(tmp_path: Path) -> None:
    """Against its original they begin nothing anew; among ranks they do."""
    (tmp_path / "main.py").write_text(_CHOSEN, encoding="utf-8")
    options = RunOptions("main.py", (), sys.executable, random="cpu", timeout=100.0, trace=Trace(), threads=1)

    def rate(*lines: int, every: bool = False) -> float:
        runner = Runner(
            Project(tmp_path, "main.py"), options, "cuda", warm=forked.warm(), inserted={"main.py": [*lines]}
        )
        run = runner.run(replay=Replay({}, every=every)).first
        assert run is not None
        return float(run.of("optimizer")[0].fields["hyper"][0]["lr"])

    assert rate() == rate(12) != rate(13) != rate(12, 13)
    assert rate(12, 13, every=True) == rate()
