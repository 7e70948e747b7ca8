"""What is a tensor for certain: pairs of a receiver that is one, and one that might be anything."""

from __future__ import annotations

import ast

import pytest

from transplt.base.text.source import read_source
from transplt.engine.analysis.receivers import Receivers
from transplt.syntax.names import Names
from transplt.syntax.parse import parse
from transplt.syntax.scan import scan


def is_tensor(source: str) -> bool:
    """Whether the receiver of `.probe()` in a source is a tensor for certain."""
    read = read_source(source.encode())
    found = scan(read, parse(read), "m.py")
    (probe,) = found.attributes["probe"]
    assert isinstance(probe, ast.Attribute)
    return Receivers(found, Names(found)).is_tensor(probe.value)


CLASS = (
    "import torch\nfrom torch import nn\nclass M(nn.Module):\n    def __init__(self):\n        {}\n"
    "    def f(self, x):\n        {}\n"
)


@pytest.mark.parametrize(
    "source",
    [
        "import torch\ntorch.ones(3).probe()\n",
        "import torch\n(-torch.ones(3)).probe()\n",
        "import torch\n(1 - torch.ones(3)).probe()\n",
        "import torch\n(torch.ones(3) > 1).probe()\n",
        "import torch\ntorch.ones(3)[0].probe()\n",
        "import torch\ntorch.ones(3).T.probe()\n",
        "import torch\ntorch.ones(3).abs().probe()\n",
        "import torch\n(torch.ones(3) if a else torch.zeros(3)).probe()\n",
        "import torch\nx = torch.ones(3)\nx.probe()\n",
        "import torch\nx = torch.ones(3)\nx = x + 1\nx += 2\nx.probe()\n",
        "import torch\nx: torch.Tensor\nx.probe()\n",
        "import torch\nx: torch.Tensor = torch.ones(3)\nx.probe()\n",
        "from torch import Tensor\ndef f(x: Tensor):\n    x.probe()\n",
        "import torch\ndef f(x: 'torch.Tensor'):\n    x.probe()\n",
        "import torch\nx = torch.Tensor(3)\nx.probe()\n",
        "import torch.nn.functional as F\nx = F.relu(y)\nx.probe()\n",
        CLASS.format("self.w = nn.Parameter(y)", "self.w.probe()"),
        CLASS.format("self.register_buffer('w', y)", "self.w.probe()"),
        CLASS.format("self.c: nn.Conv2d = nn.Conv2d(1, 1, 1)", "self.c(x).probe()"),
    ],
)
def test_certain(source: str) -> None:
    assert is_tensor(source)


@pytest.mark.parametrize(
    "source",
    [
        "import torch\nx.probe()\n",
        "import torch\ntorch.load(f).probe()\n",
        "import torch\ntorch.ones(3).max(0).probe()\n",
        "import torch\ntorch.ones(3).shape.probe()\n",
        "import torch\n(not torch.ones(3)).probe()\n",
        "import torch\n(torch.ones(3) is None).probe()\n",
        "import torch\n(torch.ones(3) if a else None).probe()\n",
        "import torch\nx = torch.ones(3)\nx = None\nx.probe()\n",
        "import torch\nx = y\ny = x\nx.probe()\n",
        "import torch\nx = x + 1\nx.probe()\n",
        "import torch\nfor x in torch.ones(3):\n    x.probe()\n",
        "import torch\nx, y = torch.ones(2)\nx.probe()\n",
        "import torch\nx: int\nx.probe()\n",
        "import torch\ndef f(x):\n    x.probe()\n",
        "import torch\ndef f(x: torch.Tensor):\n    x = g(x)\n    x.probe()\n",
        "import torch\ndef f(**x: torch.Tensor):\n    x.probe()\n",
        "import torch\nx = Tensor(3)\nx.probe()\n",
        "import numpy as torch\ntorch.ones(3).probe()\n",
        "import torch\nclass A:\n    x = torch.ones(3)\nx.probe()\n",
        "import torch\nself.w.probe()\n",
        CLASS.format("self.w = nn.Parameter(y)", "self.v.probe()"),
        CLASS.format("self.w = nn.Parameter(y)\n        self.w = None", "self.w.probe()"),
        CLASS.format("self.register_parameter('w', None)", "self.w.probe()"),
        CLASS.format("self.c = nn.Conv2d(1, 1, 1)\n        self.c = other()", "self.c(x).probe()"),
        CLASS.format("self.c = nn.LSTM(1, 1)", "self.c(x).probe()"),
        CLASS.format("pass", "self.c(x).probe()"),
        "import torch\n[1].probe()\n",
        "import torch\n(lambda: 1)().probe()\n",
    ],
)
def test_not_certain(source: str) -> None:
    assert not is_tensor(source)


def test_modules() -> None:
    source = """
import torch
from torch import nn
class A(nn.Module): ...
class B(A):
    def f(self):
        self.eval()
class C(A, mixin.Mixin):
    def f(self):
        self.train()
class D(dict):
    def f(self):
        self.half()
"""
    read = read_source(source.encode())
    found = scan(read, parse(read), "m.py")
    receivers = Receivers(found, Names(found))

    def own(name: str) -> bool:
        (node,) = found.attributes[name]
        return receivers.is_own_module(node.value, name)

    assert own("eval")
    assert not own("train")  # the mixin may define it
    assert not own("half")
