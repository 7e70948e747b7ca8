"""`transplt run --dump` and `--fault`: what a run records is what msprobe records, and a fault is in the record."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from transplt.proof.launch.dumping import asked_for, check, read_fault, read_steps
from transplt.proof.launch.options import UsageError

TRAIN = """\
import torch
import torch.nn.functional as F
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(inplace=True))
        self.norm = nn.LayerNorm(72)
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(72, 4)
    def forward(self, x):
        x = self.drop(self.norm(self.body(x).flatten(1)))
        return F.log_softmax(self.head(x), dim=1)
net = Net().to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(5):
    x, y = torch.randn(4, 1, 8, 8, device=device), torch.arange(4, device=device)
    optimizer.zero_grad()
    loss = F.nll_loss(net(x), y)
    if step == 1:
        continue
    if step == 3:
        break
    loss.backward()
    optimizer.step()
half = torch.full((2,), 300.0, dtype=torch.float16, device=device)
"""
NPU = "import torch_npu\ndevice = 'npu'\n" + TRAIN
CUDA = "device = 'cuda'\n" + TRAIN


def rows(folder: Path, step: int = 0) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((folder / f"step{step}" / "rank0" / "dump.json").read_text())["data"]
    return data


def figures(value: Any) -> Any:
    """What must be equal on two hosts: not the names of devices, nor of files."""
    if isinstance(value, dict):
        if value.get("type") == "torch.device" or value.get("value") in ("npu", "cuda"):
            return "device"
        return {key: figures(each) for key, each in value.items() if key != "data_name"}
    return [figures(each) for each in value] if isinstance(value, list) else value


@pytest.mark.torch
def test_a_dump_has_the_rows_of_both_hosts_and_a_fault_in_its_place(transplt_run: Any, tmp_path: Path) -> None:
    import torch

    npu, cuda, wrong = (tmp_path / name for name in ("npu", "cuda", "wrong"))
    code, _, said = transplt_run(NPU, options=["--dump", str(npu), "--dump-task", "tensor", "--dump-steps", "0-1"])
    assert code == 0 and "2 steps of 1 rank dumped to" in said
    code, _, said = transplt_run(CUDA, options=["--dump", str(cuda), "--host", "cuda"])
    assert code == 0 and "2 steps of 1 rank dumped to" in said
    faults = ["--fault", "layer_norm=scale:1.5", "--fault", "Functional.relu.0=drop", "--fault", "log_softmax=nan"]
    assert transplt_run(NPU, options=["--dump", str(wrong), *faults])[0] == 0

    for step in (0, 1):  # the loss of step 1 is of two batches: its script went on before the optimizer's step
        assert figures(rows(npu, step)) == figures(rows(cuda, step))
        assert sum(name.startswith("Functional.linear") and "forward" in name for name in rows(npu, step)) == step + 1
    right = rows(npu)
    inner = [name for name in right if not name.startswith(("Torch", "Module"))]
    assert inner == [
        *(f"{name}.0.forward" for name in (
            "Functional.conv2d", "Functional.relu", "Tensor.flatten", "Functional.layer_norm", "Functional.linear",
            "Functional.log_softmax", "Functional.nll_loss")),
        *(f"{name}.0.backward" for name in (
            "Functional.nll_loss", "Functional.log_softmax", "Functional.linear", "Functional.layer_norm",
            "Tensor.flatten", "Functional.relu", "Functional.conv2d")),
    ]  # fmt: skip
    assert [name for name in right if name.startswith("Module") and "head" in name] == [
        "Module.head.Linear.forward.0", "Module.head.Linear.backward.0", "Module.head.Linear.parameters_grad.0"
    ]  # fmt: skip
    linear = right["Functional.linear.0.forward"]
    assert [each["shape"] for each in linear["input_args"]] == [[4, 72], [4, 72], [4]]
    weight = torch.load(npu / "step0/rank0/dump_tensor_data" / linear["input_args"][1]["data_name"], weights_only=True)
    assert math.isclose(weight.max().item(), linear["input_args"][1]["Max"])
    back = right["Functional.linear.0.backward"]
    assert [each["shape"] for each in back["output"]] == [[4, 72], [4, 72], [4]]
    assert back["output"][1]["Norm"] == right["Module.head.Linear.parameters_grad.0"]["weight"][0]["Norm"]
    stacks = json.loads((npu / "step0/rank0/stack.json").read_text()).values()
    frames = next(frames for names, frames in stacks if "Functional.log_softmax.0.forward" in names)
    assert frames[0].endswith("train.py, line 15, in forward, \n return F.log_softmax(self.head(x), dim=1)")
    parents = json.loads((npu / "step0/rank0/construct.json").read_text())
    assert parents["Functional.relu.0.forward"] == "Module.body.1.ReLU.forward.0"
    assert parents["Module.body.1.ReLU.forward.0"] == "Module.body.Sequential.forward.0"

    bad = rows(wrong)
    assert "Functional.relu.0.forward" not in bad
    ours, theirs = (data["Functional.layer_norm.0.forward"]["output"][0] for data in (bad, right))
    assert ours["Norm"] != theirs["Norm"]
    given = bad["Functional.layer_norm.0.forward"]["input_args"][0]
    assert given["Min"] < 0  # what relu would have taken away
    assert math.isnan(bad["Functional.log_softmax.0.forward"]["output"][0]["Max"])


GAN = """\
import torch
import torch_npu
from torch import nn
maker, judge = nn.Sequential(nn.Linear(2, 4), nn.Tanh()).npu(), nn.Sequential(nn.Linear(4, 1)).npu()
optimizers = [torch.optim.SGD(net.parameters(), lr=0.1) for net in (judge, maker)]
for step in range(3):
    for count in (2, 1):
        for _ in range(count):
            made = maker(torch.randn(3, 2, device="npu"))
            loss = judge(made).mean()
            optimizer = optimizers[2 - count]
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    if step == 2:
        torch.full((2,), 300.0, dtype=torch.float16, device="npu") * 300
        masked = made.masked_fill(made > 0, float("-inf"))
        raise RuntimeError("far enough")
"""


SCALED = """\
import torch
from torch.utils.data import DataLoader, TensorDataset
samples = TensorDataset(torch.randn(6, 3))
net = torch.nn.Linear(3, 2).to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = {scaler}
for (x,) in DataLoader(samples, batch_size=2):
    loss = net(x.to(device)).sum()
    optimizer.zero_grad()
    scaler.scale(loss * float("inf")).backward()
    scaler.step(optimizer)
    scaler.update()
"""


@pytest.mark.torch
@pytest.mark.parametrize("scaler", ["torch.amp.GradScaler(device)", "torch.npu.amp.GradScaler()"])
def test_loaders_and_scalers_are_no_part_of_a_step(transplt_run: Any, tmp_path: Path, scaler: str) -> None:
    """Nor are those of torch_npu, which leaves out each of these steps: they end all the same."""
    source = "import torch_npu\ndevice = 'npu'\n" + SCALED.format(scaler=scaler)
    code, _, said = transplt_run(source, options=["--dump", str(tmp_path / "dump"), "--dump-level", "L1"])
    assert code == 0 and "3 steps of 1 rank dumped to" in said
    # The loss times inf, and what scale() does with it.
    own = ["Functional.linear.0", "Tensor.sum.0", "Tensor.mul.0", "Tensor.mul.1"]
    for step in range(3):
        forward = [name for name in rows(tmp_path / "dump", step) if name.endswith(".forward")]
        assert forward == [f"{name}.forward" for name in own]


@pytest.mark.torch
def test_two_networks_make_one_step_and_an_overflow_is_found(transplt_run: Any, tmp_path: Path) -> None:
    code, report, _ = transplt_run(GAN, options=["--dump", str(tmp_path / "gan")])
    assert code == 1 and report["verdict"] == "stops"
    for step in (0, 1, 2):
        assert sum(name.endswith("Tanh.forward.2") for name in rows(tmp_path / "gan", step)) == 1
        assert "Module.1.0.Linear.parameters_grad.0" in rows(tmp_path / "gan", step)
    assert [(each["code"], each["line"]) for each in report["findings"]] == [("NPU794", 16)]
    assert "Tensor.mul.0.forward overflows in step 3" in report["findings"][0]["message"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("linear=scale:1.02", ("linear", "scale", "1.02", None)),
        ("Functional.relu.3@1=nan", ("Functional.relu.3", "nan", "", 1)),
        ("layer_norm=eps", ("layer_norm", "eps", "", None)),
        ("gelu=extra:tanh", ("gelu", "extra", "tanh", None)),
    ],
)
def test_a_fault_is_read(text: str, fault: object) -> None:
    assert read_fault(text) == fault


@pytest.mark.parametrize("text", ["mm", "mm=", "=nan", "mm=twist", "mm=nan:3", "mm=scale:a", "a b=nan"])
def test_what_is_no_fault_is_said_in_a_sentence(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--fault .*\.$"):
        read_fault(text)


def test_steps_are_numbers_and_ranges() -> None:
    assert read_steps("") == () and read_steps("0,2-4") == (0, 2, 3, 4)
    for wrong in ("a", "4-2", "-1", "1-99999999"):
        with pytest.raises(UsageError):
            read_steps(wrong)


def test_a_dump_is_not_written_over_another(tmp_path: Path) -> None:
    (tmp_path / "step0").mkdir()
    with pytest.raises(UsageError, match="is not empty"):
        check(tmp_path)
    assert asked_for(None, "statistics", "mix", "pt", "", 1234, ()) is None
    faulty = asked_for(None, "statistics", "mix", "pt", "", 1, ["mm=sign"])
    assert faulty is not None and faulty.as_config()["folder"] == ""
