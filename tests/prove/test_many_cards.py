"""Two ranks of a port, run: what has to hold between them is seen in a right one, and each fault of a wrong one."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from tests import forked
from tests.forked import torch_npu
from transplt.base.render.verdict import Word
from transplt.proof.launch.options import RunOptions, Trace
from transplt.proof.prove.projects import Project
from transplt.proof.prove.proof import Proof, between
from transplt.proof.prove.proof_text import as_text
from transplt.proof.prove.properties import judge
from transplt.proof.prove.runs import Runner

_ORIGINAL = """
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
device = torch.device("cuda")
xs = torch.randn(64, 6)
ys = xs.sum(1, keepdim=True).tanh()
train_set = TensorDataset(xs[:48], ys[:48])
other_set = TensorDataset(xs[16:].flip(0), ys[16:])
test_set = TensorDataset(xs[48:], ys[48:])
train_loader = DataLoader(train_set, batch_size=8, shuffle=True)
other_loader = DataLoader(other_set, batch_size=8, shuffle=True)
test_loader = DataLoader(test_set, batch_size=4)
model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 1)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
criterion = nn.MSELoss()
for epoch in range(3):
    model.train()
    for (x, y), (z, _) in zip(train_loader, other_loader):
        x, y = x.to(device), y.to(device)
        x = x + 0.1 * torch.randn(x.shape).to(device)
        loss = criterion(model(torch.cat([x, z.to(device)])), torch.cat([y, y]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in test_loader:
            total += criterion(model(x.to(device)), y.to(device)).item()
    scheduler.step(total)
    print(f"epoch {epoch}: test loss {total:.4f}")
torch.save(model.state_dict(), "model.pt")
"""
_PORT = """
import os
import torch
import torch_npu
import torch.nn as nn
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

torch.manual_seed(1)
dist.init_process_group("hccl")
rank = dist.get_rank()
torch.npu.set_device(int(os.environ["LOCAL_RANK"]))
device = torch.device("npu")
xs = torch.randn(64, 6)
ys = xs.sum(1, keepdim=True).tanh()
train_set = TensorDataset(xs[:48], ys[:48])
other_set = TensorDataset(xs[16:].flip(0), ys[16:])
test_set = TensorDataset(xs[48:], ys[48:])
train_loader = DataLoader(train_set, batch_size=4, sampler=DistributedSampler(train_set))
other_loader = DataLoader(other_set, batch_size=4, sampler=DistributedSampler(other_set, seed=5))
test_loader = DataLoader(test_set, batch_size=4)
model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 1)).to(device)
model = nn.parallel.DistributedDataParallel(model, device_ids=[torch.npu.current_device()])
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
criterion = nn.MSELoss()
torch.manual_seed(1 + rank)
for epoch in range(3):
    train_loader.sampler.set_epoch(epoch)
    other_loader.sampler.set_epoch(epoch)
    model.train()
    for (x, y), (z, _) in zip(train_loader, other_loader):
        x, y = x.to(device), y.to(device)
        x = x + 0.1 * torch.randn(x.shape).to(device)
        loss = criterion(model(torch.cat([x, z.to(device)])), torch.cat([y, y]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in test_loader:
            total += criterion(model(x.to(device)), y.to(device)).item()
    scheduler.step(total)
    if rank == 0:
        print(f"epoch {epoch}: test loss {total:.4f}")
if rank == 0:
    torch.save(model.module.state_dict(), "model.pt")
dist.destroy_process_group()
"""
_SHARED_TEST = ("DataLoader(test_set, batch_size=4)",
                "DataLoader(test_set, batch_size=4, sampler=DistributedSampler(test_set, shuffle=False))")  # fmt: skip
#: One fault for each property, but for collectives, cards and parameters.
FAULTS = {
    "shares of the data": ("DistributedSampler(train_set)", "DistributedSampler(train_set, seed=rank)"),
    "order of each epoch": ("    other_loader.sampler.set_epoch(epoch)\n", ""),
    "noise": ("torch.manual_seed(1 + rank)\n", ""),
    "same buffers": ("criterion(model(x.to(device)), y", "criterion(model.module(x.to(device)), y"),
    "results of all ranks": _SHARED_TEST,
    "files": ("if rank == 0:\n    torch.save", "if True:\n    torch.save"),
}


def proven(folder: Path, original: str, port: str, *, shuffled: bool = False) -> Proof:
    for name, written in (("original", original), ("migrated", port)):
        (folder / name).mkdir()
        (folder / name / "main.py").write_text(written, encoding="utf-8")
    options = RunOptions(
        "main.py", (), sys.executable, random="cpu", timeout=100.0, trace=Trace(steps=0), threads=1,
        torch_npu=torch_npu(),
    )
    before, after = (Project(folder / name, "main.py") for name in ("original", "migrated"))
    prover = between(before, after, options, lambda text: None, forked.warm())
    prover.shuffled = shuffled
    return prover.prove((2,))


def faulty(text: str) -> str:
    for old, new in FAULTS.values():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def broken(proof: Proof) -> set[str]:
    return {each.name for each in proof.parts[0].findings.properties if each.verdict.word is not Word.EQUAL}


@pytest.mark.torch
def test_all_of_them_are_seen_to_hold(tmp_path: Path) -> None:
    proof = proven(tmp_path, _ORIGINAL, _PORT)
    assert proof.verdict.word is Word.EQUAL, as_text(proof)
    seen = {each.name for each in proof.parts[0].findings.properties}
    assert seen == {"collectives", "a card for each rank", "same parameters", "same schedules", *FAULTS}


@pytest.mark.torch
def test_each_fault_is_found(tmp_path: Path) -> None:
    proof = proven(tmp_path, _ORIGINAL, faulty(_PORT))
    # The metric of each rank is that of its share; and so is the rate, which makes the parameters differ.
    assert broken(proof) - {"same parameters"} == {*FAULTS, "same schedules"}, as_text(proof)


@pytest.mark.torch
def test_faults_of_the_original_are_its_own(tmp_path: Path) -> None:
    wrong = faulty(_PORT).replace("    scheduler.step(total)\n", "    scheduler.step(epoch)\n")
    original = wrong.replace("import torch_npu\n", "").replace("hccl", "nccl").replace("npu", "cuda")
    proof = proven(tmp_path, original, wrong)
    assert proof.verdict.word is Word.EQUAL, as_text(proof)
    told = {each.name for each in proof.parts[0].findings.properties if "as in the original" in each.verdict.sentence}
    assert told == {*FAULTS}


@pytest.mark.torch
def test_a_score_with_dropout_that_decides(tmp_path: Path) -> None:
    """Held still, all ranks find the same score; the unseeded start lasts until they decide by it."""
    swap = ("    model.eval()\n", "    model.train()\n")
    proof = proven(tmp_path, _ORIGINAL.replace(*swap), _PORT.replace(*swap))
    said = str(proof.parts[-1].verdict)
    assert said.startswith("differs: ") and "rank 0 steps ReduceLROnPlateau with" in said, as_text(proof)
    assert "without seeds from transplt, with 2 processes" in said
    assert all(part.verdict.word is Word.EQUAL for part in proof.parts[:-1])


_SAVES = """
if rank == 0:
    for number in range(8):
        torch.save(number, f"{number}.pt")
    open("names.txt", "w").write("0.pt")
else:
    import time

    time.sleep(0.3)
    os.close(os.open("names.txt", os.O_RDONLY))
"""


@pytest.mark.torch
@pytest.mark.parametrize(("wait", "word"), [("", Word.STOPS), ("dist.barrier()\n", Word.EQUAL)])
def test_ranks_that_are_delayed_on_purpose(wait: str, word: Word, tmp_path: Path) -> None:
    """A read that comes late by luck alone: what the system opens has no event of its own."""
    saves = _SAVES if not wait else _SAVES.replace("else:", f"{wait}else:\n    {wait}")
    saves = saves.replace(wait, f"    {wait}", 1) if wait else saves
    port = _PORT.replace("for epoch in range(3):", f"{saves}for epoch in range(1):")
    proof = proven(tmp_path, _ORIGINAL.replace("range(3)", "range(1)"), port, shuffled=True)
    last = proof.parts[-1]
    assert "--shuffle-ranks" in last.title and last.verdict.word is word, as_text(proof)
    assert all(part.verdict.word is Word.EQUAL for part in proof.parts[:-1]), as_text(proof)


#: A port that starts a process for each card by itself, and seeds nothing.
_SPAWNS = """
import os
import sys
import torch
import torch_npu
import torch.distributed as dist
import torch.multiprocessing as mp


def train(rank, world):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[1])
    torch.npu.set_device(rank)
    dist.init_process_group("hccl", rank=rank, world_size=world)
    data = torch.utils.data.TensorDataset(torch.arange(128.0).view(32, 4) / 128)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1)).npu()
    model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    sampler = torch.utils.data.distributed.DistributedSampler(data)
    for (x,) in torch.utils.data.DataLoader(data, batch_size=4, sampler=sampler):
        x = x + 0.1 * torch.randn(x.shape)
        loss = model(x.npu()).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    world = torch.npu.device_count()
    mp.spawn(train, args=(world,), nprocs=world)
"""


@pytest.mark.torch
def test_spawned_ranks_that_nobody_seeds_draw_noise_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(_SPAWNS, encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    options = RunOptions(
        "main.py",
        (port,),
        sys.executable,
        random="cpu",
        timeout=100.0,
        trace=Trace(),
        threads=1,
        torch_npu=torch_npu(),
    )
    runner = Runner(Project(tmp_path, "main.py"), options, "npu", spawns=True, warm=forked.warm())
    run = runner.run(2)
    assert run.stop is None, run.stop
    found = {each.name: each.found for each in judge(run.trainings, run.first, tmp_path)[0]}
    assert found["noise"] == "each rank draws its own random numbers", found


#: A launcher that sets LOCAL_RANK alone, processes that a script spawns by itself, and two of `mp.spawn`.
_LAUNCHES = """
import os
import random
import subprocess
import sys
import torch


def draw(*given):
    print("drawn", torch.rand(1).item(), random.random(), flush=True)


if __name__ == "__main__":
    draw()
    if len(sys.argv) > 1:
        for rank in ("0", "1"):
            subprocess.run([sys.executable, __file__], env={**os.environ, "LOCAL_RANK": rank}, check=True)
        for number in range(2):
            process = torch.multiprocessing.get_context("spawn").Process(target=draw)
            process.start()
            process.join()
        torch.multiprocessing.spawn(draw, nprocs=2)
"""


@pytest.mark.torch
@pytest.mark.slow
def test_each_process_of_a_training_has_a_seed_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(_LAUNCHES, encoding="utf-8")
    options = RunOptions(
        "main.py",
        ("all",),
        sys.executable,
        random="cpu",
        timeout=100.0,
        trace=Trace(),
        threads=1,
        torch_npu=torch_npu(),
    )
    outcome = Runner(Project(tmp_path, "main.py"), options, "npu", warm=forked.warm()).run().outcome
    drawn = [line for line in outcome.output.splitlines() if line.startswith("drawn")]
    alone, others = drawn[0], drawn[1:]
    assert len(others) == 6
    assert others.count(alone) == 3, drawn  # what is done in one process goes on as it does there
    assert len({*others}) == 2, drawn
