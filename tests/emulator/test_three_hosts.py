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


#: Each is a process or two on each host: these hold most of what the others do.
SOME = ("branch", "kept", "many")


@pytest.mark.parametrize(
    ("host", "names"),
    [
        ("npu", SOME),
        pytest.param("cuda", SOME, marks=pytest.mark.slow),
        *(pytest.param(host, tuple(HEADS), marks=pytest.mark.slow) for host in ("cpu", "npu", "cuda")),
    ],
    ids=lambda value: value if isinstance(value, str) else len(value),
)
def test_what_ran_still_runs(host: str, names: tuple[str, ...]) -> None:
    texts = {name: f"import torch\ntorch.manual_seed(0)\n{HEADS[name]}\n{TRAINING}".encode() for name in names}
    pairs = pairs_of(texts, 60)
    assert [pair["name"] for pair in pairs] == [*names]
    results = run_on(host, pairs)
    assert [each["name"] for each in results] == [*names]
    assert [why for each in results if (why := fault(host, each))] == []
    assert [each["name"] for each in results if each["before"]["end"]] == []
