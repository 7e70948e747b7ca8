"""Portable output on three hosts: what ran still runs, with the same values. The whole: benchmarks/three_hosts.py."""

from __future__ import annotations

import pytest

from benchmarks.three_hosts import fault, pairs_of, run_on

pytestmark = pytest.mark.torch
TRAINING = """
model = torch.nn.Linear(3, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    loss = model(torch.ones(4, 3).to(device)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(round(loss.item(), 4))
"""
HEADS = {
    "choice": 'device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")',
    "name": 'use = torch.cuda.is_available()\ndevice = torch.device("cuda" if use else "cpu")',
    "branch": 'device = torch.device("cpu")\nif torch.cuda.is_available():\n    device = torch.device("cuda")\n'
    "    torch.cuda.empty_cache()",
    "seed": 'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")\n'
    "if torch.cuda.is_available():\n    torch.cuda.manual_seed(1)\n    torch.cuda.synchronize()",
    "kept": "device = torch.device('cpu')\nprint(torch.cuda.max_memory_allocated() >= 0)\n"
    "if torch.cuda.is_available():\n"
    "    scaler = torch.cuda.amp.GradScaler()\n    torch.cuda.set_device(0)\n"
    "other = 'cuda' if torch.cuda.is_available() else 'cpu'\nx = torch.ones(1).to(other)",
    "many": 'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")\nif torch.cuda.device_count() > 1:\n'
    "    net = torch.nn.DataParallel(torch.nn.Linear(2, 2).to(device))",
    "type": 'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")\nif device.type == "cuda":\n'
    "    torch.cuda.synchronize()\n    half = torch.cuda.amp.autocast",
}


@pytest.mark.parametrize("host", [pytest.param("cpu", marks=pytest.mark.slow), "npu", "cuda"])
def test_what_ran_still_runs(host: str) -> None:
    texts = {name: f"import torch\ntorch.manual_seed(0)\n{head}\n{TRAINING}".encode() for name, head in HEADS.items()}
    pairs = pairs_of(texts, 60)
    assert [pair["name"] for pair in pairs] == list(HEADS)
    results = run_on(host, pairs)
    assert [each["name"] for each in results] == list(HEADS)
    assert [why for each in results if (why := fault(host, each))] == []
    assert [each["name"] for each in results if each["before"]["end"]] == []
