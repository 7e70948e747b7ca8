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
