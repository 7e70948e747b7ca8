"""Models that compute in 64-bit floats."""

from __future__ import annotations

import textwrap

import pytest

from tests.harness import migrate

HEAD = """import torch
from torch import nn


class Net(nn.Module):
    pass


class Grid:
    pass


"""


def lines(body: str) -> list[str]:
    """The lines that are reported in a function with this body."""
    source = f"{HEAD}\ndef f(x, device, net, use_cuda):\n{textwrap.indent(body, '    ')}\n"
    result = migrate(source)
    return [source.splitlines()[each.span.line - 1].strip() for each in result.findings if each.code == "NPU136"]


@pytest.mark.parametrize(
    "body",
    [
        "model = Net().to(device, dtype=torch.double)",
        "model = Net().to(device, torch.float64)",
        "model = Net().double().cuda()",
        "model = Net().cuda().eval().double()",
        "m = Far(2).to(device, dtype=torch.double); opt = torch.optim.Adam(m.parameters())",
        'model = torch.nn.Linear(2, 3).double().to("cuda:0")',
        "net.train(); net.double().cuda()",
        "net.to(device, dtype=torch.float64); opt = torch.optim.Adam(net.parameters())",
    ],
)
def test_a_model_on_the_card(body: str) -> None:
    assert lines(body) == [body]


def test_a_model_that_moves_elsewhere() -> None:
    body = "net.eval()\nnet.double()\nif use_cuda:\n    net.cuda()"
    assert lines(body) == ["net.double()"]


def test_a_default_type() -> None:
    body = "torch.set_default_dtype(torch.float64)\nx = x.cuda()"
    assert lines(body) == ["torch.set_default_dtype(torch.float64)"]
    assert lines("torch.set_default_tensor_type(torch.cuda.DoubleTensor)") != []


@pytest.mark.parametrize(
    "body",
    [
        # tensors: meters, indices, losses
        "x = x.double().cuda()",
        "x = torch.zeros(3).to(device, dtype=torch.double)",
        "loss = nn.functional.mse_loss(x, x).double(); x = x.cuda()",
        "g = Far(2).to(device, dtype=torch.double)",
        # on the host
        "net.train(); net.double()",
        'net.train(); net.to("cpu", dtype=torch.double); x = x.cuda()',
        "model = Net().double(); x = x.cuda()",
        # of other libraries
        "g = Grid().double().cuda()",
        "g = Grid().to(device, dtype=torch.double)",
        # other types
        "model = Net().to(device, dtype=torch.half)",
        "model = Net().float().cuda()",
        "torch.set_default_dtype(torch.float32); x = x.cuda()",
        "net.parameters(); net.to(device)",
        "net.double(2); net.train(); net.cuda()",
    ],
)
def test_nothing_is_said(body: str) -> None:
    assert lines(body) == []


def test_a_program_that_names_no_card() -> None:
    result = migrate("import torch\n\ntorch.set_default_dtype(torch.float64)\n")
    assert not [each for each in result.findings if each.code == "NPU136"]


_TABLE = """
    import torch

    TYPES = {"float32": torch.float32, "float64": torch.float64}


    def start(name):
        assert torch.cuda.is_available()
        torch.set_default_dtype(TYPES[name])
"""
_OPTION = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--default_dtype', default='float64')\n"


@pytest.mark.parametrize(
    ("table", "option", "count"),
    [
        (_TABLE, _OPTION, 1),
        (_TABLE, _OPTION.replace("float64", "float32"), 0),
        (_TABLE, _OPTION.replace("default_dtype", "kind"), 0),
        (_TABLE, _OPTION.replace("default='float64'", "required=True"), 0),
        (_TABLE.replace("torch.float64", "torch.float16"), _OPTION, 0),
        (_TABLE.replace("TYPES[name]", "name"), _OPTION, 0),
    ],
)
def test_a_default_type_that_an_option_asks_for(table: str, option: str, count: int) -> None:
    found = [each for each in migrate(table, files={"arguments.py": option}).findings if each.code == "NPU136"]
    assert len(found) == count and all("--default_dtype makes it the default" in each.message for each in found)


#: `la` is trained, in two ways.
TRAINED = "la.requires_grad = True\n"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("la = torch.tensor(np.log(x)).to(device)\n" + TRAINED, True),
        ("net.la = torch.tensor(np.sqrt(2)).cuda()\nnet.la.requires_grad_()", True),
        ("la = torch.tensor(np.log(x), device=device, requires_grad=True)", True),
        ("la = nn.Parameter(torch.tensor(np.log(x))).to(device)", True),
        ("la = torch.tensor(np.log(x)).to(device)", False),
        ("la = torch.tensor(np.log(x), dtype=torch.float32).to(device)\n" + TRAINED, False),
        ("la = torch.tensor(float(np.log(x))).to(device)\n" + TRAINED, False),
        ("la = torch.tensor(np.log(x))\n" + TRAINED, False),
        ("la = torch.tensor(np.argmax(x)).to(device)\n" + TRAINED, False),
        ("la = torch.tensor(np.log(x), device=device, requires_grad=False)", False),
    ],
)
def test_a_trained_number_that_numpy_made(body: str, told: bool) -> None:
    source = f"import numpy as np\n{HEAD}\ndef f(x, device, net):\n{textwrap.indent(body, '    ')}\n"
    found = [each.message for each in migrate(source).findings if each.code == "NPU136"]
    assert ["trained number is float64" in each for each in found] == [True] * told
