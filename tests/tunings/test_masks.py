"""Minus infinity before a softmax, and assignments under boolean masks."""

from __future__ import annotations

import pytest

from tests.tunings.tuned import check_tuned, check_untuned

FINITE = """
import math
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self):
        self.softmax = nn.Softmax(dim=-1)

    def forward(self, x, y, mask):
        {body}
        return out
"""
INFINITIES = ["float('-inf')", "-float('inf')", "float('-Infinity')", "-math.inf", "-np.inf", "-torch.inf"]
LOW = "torch.finfo(x.dtype).min"


def finite(body: str) -> str:
    return FINITE.format(body=body.replace("\n", "\n        "))


@pytest.mark.parametrize("infinity", INFINITIES)
@pytest.mark.parametrize(
    "body",
    [
        "x = x.masked_fill(mask, INF)\nout = F.softmax(x, dim=-1)",
        "out = torch.softmax(x.masked_fill(mask, INF), dim=-1)",
        "x = x @ y\nx.masked_fill_(mask == 0, INF)\nout = x.softmax(-1)",
        "x = x.masked_fill(mask, INF)\nout = F.softmax(x + y, -1)",
        "y = torch.full_like(x, INF).triu(1)\nx = x + y\nout = F.softmax(x, -1)",
        "y = torch.triu(x.new_full((3, 3), INF), 1)\nout = F.softmax(y + x, -1)",
        "y = torch.full((3, 3), INF, dtype=x.dtype).triu(1)\nout = F.softmax(x + y, -1)",
        "for y in mask:\n    x = x @ y\n    x = x.masked_fill(mask, INF)\n    out = F.softmax(x, -1)",
        "x = torch.masked_fill(x, mask, INF)\nout = self.softmax(x)",
        "x = x.masked_fill(mask, value=INF)\nout = nn.Softmax(dim=-1)(x).to(x.dtype)",
        "if mask is not None:\n    x = x.masked_fill(mask, INF)\nout = F.softmax(x, dim=-1, dtype=torch.float32)",
        "z = x.masked_fill(mask, INF)\nz = z.view(2, -1)\nout = z.softmax(-1)",
        "x = x.masked_fill(mask, INF)\nx = F.softmax(x, -1)\nout = x + y",
    ],
)
def test_masks_before_a_softmax(body: str, infinity: str) -> None:
    check_tuned("finite-masks", finite(body.replace("INF", infinity)), finite(body.replace("INF", LOW)))


@pytest.mark.parametrize(
    "body",
    [
        "out = x.masked_fill(mask, float('-inf'))",
        "x = x.masked_fill(mask, float('-inf'))\nout = x + y",
        "x = x.masked_fill(mask, float('-inf'))\nout = F.softmax(x * y, -1)",
        "x.masked_fill_(mask, float('-inf'))\nout = F.softmax(x, -1)",  # the caller's tensor
        "x = y[0]\nx.masked_fill_(mask, float('-inf'))\nout = F.softmax(x, -1)",
        "x = x.masked_fill(mask, float('-inf'))\nif y:\n    x = F.softmax(x, -1)\nelse:\n    y = x * 2\nout = x",
        "for y in mask:\n    print(x)\n    x = x.masked_fill(mask, float('-inf'))\n    out = F.softmax(x, -1)",
        "for y in mask:\n    x = x.masked_fill(mask, float('-inf'))\n    out = F.softmax(x, -1)",
        "x = x.masked_fill(mask, float('-inf'))\nout = F.softmax(x, -1) + x",
        "x = x.masked_fill(mask, float('-inf'))\nout = F.log_softmax(x, -1)",
        "x = x.masked_fill(mask, float('-inf'))\nout = x.argmax(-1), F.softmax(x, -1)",
        "x = x.masked_fill(mask, float('-inf'))\nout = torch.topk(F.softmax(y, -1), x)",
        "x = x.masked_fill(mask, float('-inf'))\nout = lambda: F.softmax(x, -1)",
        "x = x.masked_fill(mask, float('-inf'))\nx = F.softmax(x, -1)\nout = x.masked_fill(torch.isnan(x), 0)",
        "x = x.masked_fill(mask, float('inf'))\nout = F.softmax(x, -1)",
        "x = x.masked_fill(mask, -1e9)\nout = F.softmax(x, -1)",
        "x = x.masked_fill(mask, y)\nout = F.softmax(x, -1)",
        "y = torch.full((3, 3), float('-inf')).triu(1)\nout = self.other(x, y)",
        "y = torch.full((3, 3), 0.0).triu(1)\nout = F.softmax(x + y, -1)",
        "out = torch.full((3, 3), float('-inf')).triu(1)",
        "self.x = x.masked_fill(mask, float('-inf'))\nout = F.softmax(self.x, -1)",
        "x = x.masked_fill(mask, float('-inf'))\nout = self.other(x)",
        "x = x.masked_fill(mask, float('-inf'))\nout = F.softmax(self.other(x), -1)",
        "x = x.masked_fill(mask, float('-inf'))\nout = F.softmax(torch.exp(x), -1)",
        "z = x.masked_fill_(mask, float('-inf'))\nout = F.softmax(z, -1)",
    ],
)
def test_other_masks_stay(body: str) -> None:
    check_untuned("finite-masks", finite(body))


def test_a_mask_in_the_default_dtype() -> None:
    body = "y = torch.full((3, 3), INF).to(x).triu(1)\nout = F.softmax(x + y, -1)"
    low = "torch.finfo(torch.get_default_dtype()).min"
    check_tuned("finite-masks", finite(body.replace("INF", "float('-inf')")), finite(body.replace("INF", low)))


def test_scores_without_a_name_are_a_remark() -> None:
    body = "out = F.softmax((x @ y).masked_fill(mask, float('-inf')), -1)"
    check_untuned("finite-masks", finite(body), open_codes=["NPU766"])


MASKED = """
import numpy as np
import torch


def f(x, y, mask):
    {body}
    return x
"""


def masked(body: str) -> str:
    return MASKED.format(body=body.replace("\n", "\n    "))


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("x[x < 0] = 0", "x.masked_fill_(x < 0, 0)"),
        ("x[x == -100] = -1  # padding", "x.masked_fill_(x == -100, -1)  # padding"),
        ("x[x > y] = 1.0", "x.masked_fill_(x > y, 1.0)"),
        ("x[y != x] = True", "x.masked_fill_(y != x, True)"),
        ("x[~(x == y)] = 0", "x.masked_fill_(~(x == y), 0)"),
        ("x[(x < 0) | (x > 1)] = 0", "x.masked_fill_((x < 0) | (x > 1), 0)"),
        ("x[x < y[:, [-1]]] = -float('Inf')", "x.masked_fill_(x < y[:, [-1]], -float('Inf'))"),
        ("x[x.isnan()] = 0", "x.masked_fill_(x.isnan(), 0)"),
    ],
)
@pytest.mark.parametrize("shown", ["x = x.clone()", "x = torch.zeros(3)", "x.requires_grad_(False)", "torch.relu(x)"])
def test_one_number_where_x_is_compared(line: str, written: str, shown: str) -> None:
    check_tuned("masked-assignment", masked(f"{shown}\n{line}"), masked(f"{shown}\n{written}"))


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("x[torch.isnan(x)] = 0", "x.masked_fill_(torch.isnan(x), 0)"),
        ("x[~torch.isfinite(x)] = 0", "x.masked_fill_(~torch.isfinite(x), 0)"),
        ("y.grad[torch.isnan(y.grad)] = 0", "y.grad.masked_fill_(torch.isnan(y.grad), 0)"),
    ],
)
def test_a_test_of_torch_shows_a_tensor_of_torch(line: str, written: str) -> None:
    check_tuned("masked-assignment", masked(line), masked(written))


@pytest.mark.parametrize(
    "body",
    [
        "x[x < 0] = 0",  # perhaps of numpy
        "x = np.zeros(3)\nx[x < 0] = 0",
        "x = torch.from_numpy(x).numpy()\nx[x < 0] = 0",
        "x = x.numpy()\nx[np.isnan(x)] = 0",
        "x[x < 0] = 0\nx = torch.from_numpy(x).cpu()\ny = x.unsqueeze(0)",
        "x = x.clone()\nx = x.numpy()\nx[x < 0] = 0",
        "if isinstance(x, torch.Tensor):\n    x.clone()\nx[x < 0] = 0",
        "x = torch.topk(x, 2)\nx[x == 0] = 0",
        "torch.utils.data.DataLoader(x)\nx[x == 0] = 0",
        "x = x.clone()\nx[mask] = 0",  # of any shape
        "x = x.clone()\nx[y < 0] = 0",
        "x = x.clone()\nx[x[0] < 0] = 0",
        "x = x.clone()\nx[x < 0, 1] = 0",
        "x = x.clone()\nx[x < 0] = y",
        "x = x.clone()\nx[x < 0] = 0.5",  # a tensor of integers takes 0, masked_fill_ refuses
        "x = x.clone()\nx[x < 0] += 1",
        "x = x.clone()\nx[x < 0] = x[x > 0] = 0",
        "x = x.clone()\nx[x < 0] = -x[x < 0]",
        "x = x.clone()\nx[0 < x < 1] = 0",
        "x = x.clone()\nx[x in y] = 0",
        "x = x.clone()\nx[torch.isnan(y)] = 0",
        "x = x.clone()\ny = x[x < 0]",
        "x = x.clone()\nx[0] = 0",
        "x = x.clone()\nx[:, 0] = 0",
        "x = x.clone()\ndel x[x < 0]",
        "x = x.clone()\nx.clone()[x < 0] = 0",
        "x = {}\nx[y] = 0",
        "x = y\nx[x < 0] = 0",
        "x = y + 1\nx[x < 0] = 0",
    ],
)
def test_other_assignments_stay(body: str) -> None:
    check_untuned("masked-assignment", masked(body))


def test_both_tunings_at_one_place() -> None:
    before = "x = x.clone()\nx[x < y] = -float('Inf')\nx = torch.softmax(x, -1)"
    after = "x = x.clone()\nx.masked_fill_(x < y, torch.finfo(x.dtype).min)\nx = torch.softmax(x, -1)"
    check_tuned("finite-masks,masked-assignment", masked(before), masked(after))
    check_tuned("masked-assignment,finite-masks", masked(before), masked(after))


def of_module(body: str) -> str:
    return f"import torch\nimport numpy as np\n\n{body}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = torch.zeros(3)\nx[x < 0] = 0", "x = torch.zeros(3)\nx.masked_fill_(x < 0, 0)"),
        ("x = y.clone()\nif ready:\n    x[x < 0] = 0",
         "x = y.clone()\nif ready:\n    x.masked_fill_(x < 0, 0)"),
        ("for x in loader:\n    x = torch.relu(x)\n    with torch.no_grad():\n        x[x == 1] = 0",
         "for x in loader:\n    x = torch.relu(x)\n    with torch.no_grad():\n        x.masked_fill_(x == 1, 0)"),
        ("x = load()\nx.requires_grad_(False)\nx[x < 0] = 0\ndef f():\n    x = np.zeros(3)\n    return x",
         "x = load()\nx.requires_grad_(False)\nx.masked_fill_(x < 0, 0)\ndef f():\n    x = np.zeros(3)\n    return x"),
    ],
)  # fmt: skip
def test_at_the_level_of_the_module(before: str, after: str) -> None:
    check_tuned("masked-assignment", of_module(before), of_module(after))


@pytest.mark.parametrize(
    "body",
    [
        "x = np.zeros(3)\nx[x < 0] = 0",
        "x = load()\nx[x < 0] = 0",
        "x = torch.zeros(3)\nx = x.numpy()\nx[x < 0] = 0",
        "x = torch.zeros(3)\ndef f():\n    global x\n    x = np.zeros(3)\nf()\nx[x < 0] = 0",
        "x = torch.zeros(3)\nclass A:\n    x = np.zeros(3)\n    x[x < 0] = 0",
        "if ready:\n    x = torch.zeros(3)\nx[x < 0] = 0",
        "from data import *\nx[x < 0] = 0",
        "x = torch.zeros(3)\nx[y < 0] = 0",
    ],
)
def test_other_assignments_of_a_module_stay(body: str) -> None:
    check_untuned("masked-assignment", of_module(body))
