"""What is said where a model is exported and saved, and what is left in peace."""

from __future__ import annotations

import pytest

from tests.support.harness import findings, said
from transplt.base.finding import Level

EXPORT = """\
import torch
from mine import Net


def export(path):
    model = Net()
    model.load_state_dict(torch.load(path, map_location="cpu"))
    model.eval()
    example = torch.zeros(1, 3, 224, 224)
    axes = {"input": {0: "batch"}}
    torch.onnx.export(model, example, "net.onnx", opset_version=13, input_names=["input"], dynamic_axes=axes)
"""
SAVE = """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def train(model, rank, state):
    model = DDP(model, device_ids=[rank])
    torch.save({"epoch": 1, "state_dict": model.state_dict()}, "net.pt")
"""
CODES = tuple(f"NPU73{number}" for number in range(1, 6))


def told(source: str) -> list[tuple[str, int]]:
    return [(each.code, each.span.line) for each in findings(source) if each.code in CODES]


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("    model.eval()\n", "", "NPU731"),
        ("opset_version=13", "opset_version=20", "NPU732"),
        ("opset_version=13", "opset_version=8", "NPU732"),
        ("opset_version=13, ", "", "NPU732"),
        ("224, 224)", "224, 224).cuda()", "NPU733"),
        ("224, 224)", "224, 224, device=\"npu:0\")", "NPU733"),
        ("224, 224)", "224, 224).to(\"cuda\")", "NPU733"),
        ("export(model, example", "export(model, (example.npu(), 1)", "NPU733"),
        ("export(model, example", "export(model.cuda(), example", "NPU733"),
        (", dynamic_axes=axes", "", "NPU734"),
    ],
)
def test_one_thing_is_missing(old: str, new: str, code: str) -> None:
    assert old in EXPORT
    source = EXPORT.replace(old, new)
    line = next(number for number, text in enumerate(source.splitlines(), 1) if "onnx.export(" in text)
    assert told(source) == [(code, line)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("opset_version=13", "opset_version=11"),
        ("opset_version=13", "opset_version=18"),
        ("opset_version=13", "opset_version=args.opset"),
        ("dynamic_axes=axes", "dynamic_shapes=axes"),
        ("    model.eval()\n", "    model.train(False)\n"),
        ("model = Net()", "model = Net().eval()"),
        ("    model.eval()\n", "    prepared.eval()\n"),
        ("224, 224)", "224, 224).cuda().cpu()"),
        ("224, 224)", "224, 224).to(device)"),
        ("224, 224)", "224, 224).to(\"cpu\")"),
        ("torch.onnx.export(model, example", "mine.export(model, example.cuda()"),
        ("torch.onnx.export(model, example", "torch.onnx.export(*given, **more) or print(model, example"),
    ],
)
def test_an_export_as_it_should_be(old: str, new: str) -> None:
    assert told(EXPORT.replace(old, new) if old else EXPORT) == []


@pytest.mark.parametrize(
    "source",
    [
        "import torch\ndef export(model, x):\n    torch.jit.trace(model, x).save('m')\n",
        "import torch\nmodel = torch.jit.load('m.pt')\ntorch.jit.trace(model, x).save('m')\n",
        "import torch\nmodel = torch.compile(net)\ntorch.jit.trace(model, x).save('m')\n",
    ],
)
def test_models_that_others_made(source: str) -> None:
    assert said(source, "NPU731") == []


def test_a_trace_that_is_saved_is_an_export() -> None:
    trace = "import torch\nfrom mine import Net\nnet = Net()\ntraced = torch.jit.trace(net, x)\n"
    assert told(trace + "traced.save('net.pt')\n") == [("NPU731", 4)]
    assert told(trace + "assert traced(x)\n") == []


def test_names_of_a_wrapped_model() -> None:
    assert told(SAVE) == [("NPU735", 7)]
    alone = SAVE.replace('{"epoch": 1, "state_dict": model.state_dict()}', "model.state_dict()")
    assert told(alone) == [("NPU735", 7)]
    assert told(SAVE.replace("= DDP(model, device_ids=[rank])", "= torch.nn.DataParallel(model)")) == [("NPU735", 7)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("model.state_dict()", "model.module.state_dict()"),
        ("model.state_dict()", "net.state_dict()"),
        ("    torch.save", "    state.pop('module.head.weight')\n    torch.save"),
        ("torch.save({", "keep({"),
        ("    model = DDP", "    wrapped = DDP"),
        ("= DDP(model", "= Mine(model"),
        ("model.state_dict()}", "clean(model.state_dict())}"),
    ],
)
def test_states_that_fit(old: str, new: str) -> None:
    assert old in SAVE
    assert told(SAVE.replace(old, new)) == []


def test_parts_of_a_checkpoint() -> None:
    load = "import torch\ndef load(net):\n    state = torch.load('best.pth.tar')\n    net.load_state_dict(GIVEN)\n"
    assert told(load.replace("GIVEN", "state")) == [("NPU735", 4)]
    assert told(load.replace("GIVEN", "torch.load('best.pth.tar', map_location='cpu')")) == [("NPU735", 4)]
    assert told(load.replace("GIVEN", "state['state_dict']")) == []
    assert told(load.replace("GIVEN", "state").replace(".pth.tar", ".pth")) == []
    assert told(load.replace("GIVEN", "state").replace("torch.load(", "clean(")) == []


def test_nothing_of_it_is_work() -> None:
    source = EXPORT.replace("    model.eval()\n", "").replace("opset_version=13, ", "") + SAVE
    assert {each.level for each in findings(source) if each.code in CODES} == {Level.INFO}
