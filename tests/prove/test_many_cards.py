"""Two ranks of a port, run: what has to hold between them is seen in a right one, and each fault of a wrong one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests import forked
from transplt.proof.launch.options import RunOptions, Trace
from transplt.proof.prove.projects import Project
from transplt.proof.prove.proof import Proof, between
from transplt.proof.prove.proof_text import as_text
from transplt.render.verdict import Word

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


def proven(folder: Path, original: str, port: str) -> Proof:
    for name, written in (("original", original), ("migrated", port)):
        (folder / name).mkdir()
        (folder / name / "main.py").write_text(written, encoding="utf-8")
    options = RunOptions("main.py", (), sys.executable, random="cpu", timeout=100.0, trace=Trace(steps=0), threads=1)
    before, after = (Project(folder / name, "main.py") for name in ("original", "migrated"))
    return between(before, after, options, lambda text: None, forked.warm()).prove((2,))


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
