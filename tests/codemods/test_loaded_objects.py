"""Whole modules that torch.load refuses since torch 2.6."""

from __future__ import annotations

import textwrap

import pytest

from tests.harness import migrate


def told(body: str, version: str = "2.8") -> list[int]:
    """The lines of a function with this body at which NPU154 speaks."""
    source = f"import torch\n\n\ndef f(path, net, nn):\n{textwrap.indent(body, '    ')}\n"
    result = migrate(source, torch_version=version)
    assert not result.changed
    return [each.span.line - 4 for each in result.findings if each.code == "NPU154"]


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("state = torch.load(path)\nweights = state['model'].float().state_dict()", [1]),
        ("model = torch.load(path, 'cpu')\nmodel.eval()\nmodel.parameters()", [1]),
        ("return torch.load(path)['ema'].half().eval()", [1]),
        ("model = torch.load(path)\nif net:\n    model = model.half()\nmodel.eval()", [1]),
        ("for each in torch.load(path, map_location='cpu').modules():\n    print(each)", [1]),
    ],
)
def test_what_is_used_as_a_module(body: str, lines: list[int]) -> None:
    assert told(body) == lines
    assert told(body, "2.5") == []


@pytest.mark.parametrize(
    "body",
    [
        "model = torch.load(path, weights_only=False)\nmodel.eval()",
        "model = torch.load(path, **net.options)\nmodel.eval()",
        "state = torch.load(path)\nnet.load_state_dict(state['model'])\nnet.eval()",
        "model = torch.load(path)\nmodel = net\nmodel.eval()",
        "model = torch.load(path)\nmodel = net.half()\nmodel.eval()",
        "model = torch.load(path)\nmodel = net(model)\nmodel.eval()",
        "model = torch.load(path)\nmodel.eval",
        "model = torch.load(path)['w'].float()\nreturn model.cpu()",
        "model = torch.jit.load(path)\nmodel.eval()",
        "model = torch.load(path)\nif isinstance(model, nn.Module):\n    model = model.state_dict()",
        "s = torch.load(path)\nif type(s['m']).__name__ == 'OrderedDict':\n    s = 0\nelse:\n    s['m'].float().eval()",
        "model = torch.load(path)\nmodel = model.state_dict() if hasattr(model, 'state_dict') else model",
    ],
)
def test_what_may_be_tensors(body: str) -> None:
    assert told(body) == []


def test_a_file_from_elsewhere_is_loaded_in_one_change() -> None:
    source = """
    import torch

    def f(pretrained):
        net = torch.load(pretrained)
        net.eval()
        return torch.load(pretrained)["state"]
    """
    found = migrate(source, torch_version="2.8").findings
    assert [(each.code, each.span.line) for each in found if each.open] == [("NPU154", 4), ("NPU152", 6)]
    assert "map_location='cpu' and weights_only=False" in next(each.help for each in found if each.code == "NPU154")
