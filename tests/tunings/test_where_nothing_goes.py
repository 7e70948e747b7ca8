"""Files into which no tuning writes: nothing of them runs on a card, or on another one, or torch_npu is tried only."""

from __future__ import annotations

import pytest

from tests.harness import clean, migrate
from tests.tunings.tuned import check_tuned, check_untuned

LOOP = """
import torch
from torch.utils.data import DataLoader
from project import dataset, net, testset

{0}
model = net(){1}
optimizer = torch.optim.Adam(model.parameters())
loader = DataLoader(dataset, batch_size=8)
for x in loader:
    optimizer.zero_grad()
    model(x{1}).sum().backward()
    optimizer.step()
"""
EVERY = "fused-optimizer,drop-last,data-loader,compile-mode,internal-format"


def test_a_script_without_a_card() -> None:
    check_untuned(EVERY, LOOP.format("", ""))
    check_untuned(EVERY, LOOP.format("", '.to("cpu")'))
    check_untuned(EVERY, LOOP.format("", ".to(torch.float32)"))
    check_untuned(EVERY, LOOP.format("# on a cuda card: model.cuda()", ""))


@pytest.mark.parametrize(
    "line",
    [
        "import intel_extension_for_pytorch as ipex",
        "import tensorrt as trt",
        "import torch_tensorrt",
        "from horizon_plugin_pytorch.quantization import prepare_qat",
        "try:\n    import hbdk\nexcept ImportError:\n    pass",
    ],
)
def test_a_script_for_another_card(line: str) -> None:
    source = LOOP.format(line, ".to(device)")
    assert migrate(source, tune=tuple((name, "") for name in EVERY.split(","))).data == clean(source).encode()


def test_xpu_alone_is_another_card() -> None:
    check_untuned(EVERY, LOOP.format("", '.to("xpu")'))


def test_one_of_several_cards_is_one() -> None:
    source = LOOP.format('device = "xpu" if torch.xpu.is_available() else "npu"', ".to(device)")
    assert b"NpuFusedAdam" in migrate(source, tune=(("fused-optimizer", ""),)).data


def test_an_import_in_a_function_is_no_reason() -> None:
    source = LOOP.format("def export():\n    import tensorrt", ".npu()")
    assert b"NpuFusedAdam" in migrate(source, tune=(("fused-optimizer", ""),)).data


def test_a_project_that_tries_torch_npu() -> None:
    files = {"devices.py": "try:\n    import torch_npu\nexcept ImportError:\n    torch_npu = None\n"}
    check_untuned(EVERY, LOOP.format("from devices import torch_npu", ".to(device)"), files=files)


MASK = """
import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def forward(self, q, k, mask):
        scores = q @ k.transpose(-2, -1)
        scores = scores.masked_fill(mask, float("-inf"))
        return F.softmax(scores, dim=-1)


{0}
"""


def test_code_that_is_not_scripted() -> None:
    before = MASK.format("model = Attention().npu()")
    check_tuned("finite-masks", before, before.replace('float("-inf")', "torch.finfo(scores.dtype).min"))


@pytest.mark.parametrize(
    "use",
    [
        "model = torch.jit.script(Attention().npu())",
        "model = Attention().npu()\nfast = torch.jit.script(model)",
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a = Attention()\n\n\n"
        "fast = torch.jit.script(Net().npu())",
        "def make():\n    model = Attention().npu()\n    return model\n\n\nfast = torch.jit.script(make())",
    ],
)
def test_torchscript_knows_no_finfo(use: str) -> None:
    check_untuned("finite-masks", MASK.format(use))


def test_neither_does_mixed_precision_write_it_there() -> None:
    source = """
    import torch
    from torch import nn


    class Attention(nn.Module):
        def forward(self, scores, mask):
            return scores.masked_fill(mask, -1e9)


    model = torch.jit.script(Attention().npu())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for scores, mask in []:
        loss = model(scores, mask).mean()
        loss.backward()
        optimizer.step()
    """
    result = migrate(source, amp="native")
    assert b"finfo" not in result.data
    assert [item.code for item in result.findings if not item.applied and item.code == "NPU745"] == ["NPU745"]
