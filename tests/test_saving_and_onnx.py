"""The exporter of docs/saving_and_onnx.md is run, and onnxruntime compares what it writes with PyTorch."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parent.parent / "docs" / "saving_and_onnx.md"
NET = """
import sys
import warnings

import torch
from torch import nn

warnings.simplefilter("ignore")  # the exporter of torch says that there is another one
torch.manual_seed(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.5), nn.Flatten(), nn.Linear(4 * 36, 5)
        )

    def forward(self, x):
        return self.layers(x)


def trained():
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(3):
        optimizer.zero_grad()
        net(torch.randn(4, 3, 8, 8)).square().mean().backward()
        optimizer.step()
    return net, optimizer


net, optimizer = trained()
state = net.state_dict()
wrapped = nn.DataParallel(net).state_dict()
assert all(name.startswith("module.") for name in wrapped)
files = {
    "plain.pt": state,
    "wrapped.pt": wrapped,
    "best.pth.tar": {"epoch": 3, "state_dict": wrapped, "optimizer": optimizer.state_dict()},
}
for name, content in files.items():
    torch.save(content, name)
net.eval()
example = torch.randn(2, 3, 8, 8)
with torch.no_grad():
    wanted = net(example)
"""
LOADS = """
for name in files:
    model = Net()
    model.load_state_dict(state_of(torch.load(name, weights_only=True)))
    with torch.no_grad():
        assert torch.equal(model.eval()(example), wanted), name
inner = {"module.weight": 1, "bias": 2}
assert state_of(inner) == inner  # a model of its own may have a part of that name
print("loaded")
"""
EXPORTS = """
for name in files:
    model = export(Net(), name, torch.zeros(1, 3, 8, 8), "net.onnx")
    for batch in (1, 5):
        compare(model, "net.onnx", torch.randn(batch, 3, 8, 8))
import onnxruntime
assert [tuple(each.shape) for each in onnxruntime.InferenceSession("net.onnx").get_inputs()] == [("batch", 3, 8, 8)]
model = export(Net(), "plain.pt", torch.zeros(2, 3, 8, 8), "fixed.onnx", dynamic_batch=False)
compare(model, "fixed.onnx", example)
try:
    compare(Net().eval(), "fixed.onnx", example)
except SystemExit as error:
    print(error)
import onnx
assert {each.version for each in onnx.load("net.onnx").opset_import if not each.domain} == {OPSET}
print("exported")
"""


def exporter() -> str:
    text = PAGE.read_text(encoding="utf-8").partition("<!-- exporter -->")[2]
    return text.partition("```python\n")[2].partition("```")[0]


def run(folder: Path, rest: str) -> str:
    (folder / "all.py").write_text(exporter() + NET + rest, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "all.py"], cwd=folder, capture_output=True, text=True, check=False, timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_page_has_an_exporter_that_compiles() -> None:
    compile(exporter(), str(PAGE), "exec")
    assert "torch_npu" not in exporter()


def test_its_own_findings_are_none() -> None:
    """What the analysis says of exports and checkpoints is not to be said of the exporter that it sends people to."""
    from tests.support.harness import findings

    assert [each.message for each in findings(exporter()) if "NPU730" < each.code < "NPU740"] == []


@pytest.mark.torch
def test_every_kind_of_checkpoint_is_loaded(tmp_path: Path) -> None:
    assert run(tmp_path, LOADS) == "loaded\n"


@pytest.mark.extra
@pytest.mark.skipif(
    not all(find_spec(name) for name in ("torch", "onnx", "onnxruntime")), reason="needs torch, onnx and onnxruntime"
)
def test_onnxruntime_computes_the_same(tmp_path: Path) -> None:
    first, last = run(tmp_path, EXPORTS).splitlines()
    assert first.startswith("fixed.onnx: differs by ")
    assert last == "exported"
