"""`--amp apex` in programs that have apex: what takes the place of its CUDA kernels."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, migrate

HEAD = """\
import torch
import torch_npu  # noqa: F401
from torch import nn
from apex.optimizers import {name}
from apex import amp

model = net.to("npu")
"""
TAIL = """
model, optimizer = amp.initialize(model, optimizer, opt_level="O2")
"""


def program(optimizer: str) -> str:
    name = optimizer.partition("(")[0]
    return HEAD.format(name=name) + f"optimizer = {optimizer}" + TAIL


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("FusedAdam(model.parameters())", "NpuFusedAdamW(model.parameters(), weight_decay=0.0)"),
        ("FusedAdam(model.parameters(), 0.1)", "NpuFusedAdamW(model.parameters(), 0.1, weight_decay=0.0)"),
        ("FusedAdam(model.parameters(), weight_decay=0.1)", "NpuFusedAdamW(model.parameters(), weight_decay=0.1)"),
        ("FusedAdam(model.parameters(), adam_w_mode=False)", "NpuFusedAdam(model.parameters())"),
        ("FusedAdam(groups, lr=1, adam_w_mode=True, weight_decay=0)", "NpuFusedAdamW(groups, lr=1, weight_decay=0)"),
        ("FusedAdam(p, bias_correction=True, amsgrad=False, weight_decay=0)", "NpuFusedAdamW(p, weight_decay=0)"),
        ("FusedAdam(groups, set_grad_none=flag, weight_decay=0)", "NpuFusedAdamW(groups, weight_decay=0)"),
        ("FusedSGD(model.parameters(), lr=0.1, momentum=0.9)", "NpuFusedSGD(model.parameters(), lr=0.1, momentum=0.9)"),
        ("FusedSGD(model.parameters(), 0.1, wd_after_momentum=False)", "NpuFusedSGD(model.parameters(), 0.1)"),
    ],
)  # fmt: skip
def test_optimizers(before: str, after: str) -> None:
    result = migrate(program(before), amp="apex")
    assert result.data.decode() == program(after)
    applied = [finding for finding in result.findings if finding.applied and finding.code == "NPU749"]
    assert applied
    assert {finding.level.value for finding in applied} == {"unsafe"}


LEFT = [
    ("FusedAdam(model.parameters(), bias_correction=False)", "has no bias_correction"),
    ("FusedAdam(model.parameters(), bias_correction=flag)", "has no bias_correction"),
    ("FusedAdam(model.parameters(), amsgrad=True)", "has no amsgrad"),
    ("FusedAdam(model.parameters(), adam_w_mode=flag)", "has no adam_w_mode"),
    ("FusedAdam(model.parameters(), **options)", "may not take the same arguments"),
    ("FusedAdam(*arguments)", "may not take the same arguments"),
    ("FusedAdam(model.parameters(), 0.1, True)", "may not take the same arguments"),
    ("FusedSGD(model.parameters(), 0.1, materialize_master_grads=False)", "has no materialize_master_grads"),
    ("FusedLAMB(model.parameters())", "corrects no bias"),
    ("FusedNovoGrad(model.parameters())", "has no NovoGrad"),
    ("FusedAdagrad(model.parameters())", "has no Adagrad"),
]


@pytest.mark.parametrize(("optimizer", "why"), LEFT)
def test_optimizers_that_are_left(optimizer: str, why: str) -> None:
    result = migrate(program(optimizer), amp="apex")
    assert result.data.decode() == program(optimizer)
    told = [finding for finding in result.findings if finding.code == "NPU749"]
    assert [why in finding.message for finding in told] == [True]
    assert told[0].help
    assert not told[0].applied


NORM = """\
import torch
import torch_npu  # noqa: F401
{more}from apex import amp
from apex.normalization import FusedLayerNorm

model = net.to("npu")
norm = {norm}
model, optimizer = amp.initialize(model, optimizer, opt_level="O2")
"""


@pytest.mark.parametrize(
    ("norm", "more", "after"),
    [
        ("FusedLayerNorm(8)", "", "torch.nn.LayerNorm(8)"),
        ("FusedLayerNorm(8, eps=1e-6)", "import torch.nn as nn\n", "nn.LayerNorm(8, eps=1e-6)"),
        ("FusedLayerNorm(8, 1e-6, False)", "from torch import nn\n", "nn.LayerNorm(8, 1e-6, False)"),
    ],
)
def test_layer_norms(norm: str, more: str, after: str) -> None:
    result = migrate(NORM.format(more=more, norm=norm), amp="apex")
    unused = "from apex.normalization import FusedLayerNorm\n"
    assert result.data.decode() == NORM.format(more=more, norm=after).replace(unused, "")


@pytest.mark.parametrize(
    ("norm", "after"),
    [
        ("blocks(8, norm_layer=FusedLayerNorm)", "blocks(8, norm_layer=torch.nn.LayerNorm)"),
        ("partial(FusedLayerNorm, eps=1e-6)", "partial(torch.nn.LayerNorm, eps=1e-6)"),
        ("isinstance(layer, FusedLayerNorm)", "isinstance(layer, torch.nn.LayerNorm)"),
        ("type('Norm', (FusedLayerNorm,), {})", "type('Norm', (torch.nn.LayerNorm,), {})"),
    ],
)
def test_layer_norms_that_nothing_calls(norm: str, after: str) -> None:
    result = migrate(NORM.format(more="", norm=norm), amp="apex")
    unused = "from apex.normalization import FusedLayerNorm\n"
    assert result.data.decode() == NORM.format(more="", norm=after).replace(unused, "")
    assert "NPU510" not in {finding.code for finding in result.findings}


@pytest.mark.parametrize(
    "norm",
    [
        "build(FusedLayerNorm, FusedLayerNorm(8, memory_efficient=True))",
        "FusedLayerNorm.__doc__",
        "other.FusedLayerNorm",
        "dict(FusedLayerNorm=8)",
        "'FusedLayerNorm'",
    ],
)
def test_layer_norms_that_stay_as_they_are(norm: str) -> None:
    assert migrate(NORM.format(more="", norm=norm), amp="apex").data.decode() == NORM.format(more="", norm=norm)


@pytest.mark.parametrize("norm", ["FusedLayerNorm(8, 1e-6, True, flag)", "FusedLayerNorm(8, memory_efficient=True)"])
def test_layer_norms_that_are_left(norm: str) -> None:
    result = migrate(NORM.format(more="", norm=norm), amp="apex")
    assert result.data.decode() == NORM.format(more="", norm=norm)
    assert any("LayerNorm takes other arguments" in finding.message for finding in result.findings)


@pytest.mark.parametrize(
    ("source", "settings"),
    [
        (program("FusedAdam(model.parameters())"), {"amp": "apex", "style": "portable"}),
        (program("FusedAdam(model.parameters())"), {"amp": "native"}),
        (program("FusedAdam(model.parameters())"), {}),
        (program("FusedAdam(model.parameters())").replace("apex.optimizers", "mine.optimizers"), {"amp": "apex"}),
        (program("FusedMixedPrecisionLamb(model.parameters())"), {"amp": "apex"}),
    ],
)
def test_nothing_is_replaced(source: str, settings: dict[str, str]) -> None:
    assert migrate(source, **settings).data.decode() == source


def test_a_program_without_mixed_precision_keeps_what_it_has_of_apex() -> None:
    source = "from apex.normalization import FusedLayerNorm\n\nnorm = FusedLayerNorm(8)\n"
    check_noop(source, amp="apex", open_codes=["NPU510"])


@pytest.mark.parametrize(
    ("more", "left"),
    [
        ("", []),
        ("print(FusedLayerNorm)\n", []),
        ("FusedLayerNorm.warn = True\n", ["apex.normalization.FusedLayerNorm needs CUDA"]),
    ],
)
def test_a_layer_that_was_replaced_everywhere_is_not_left_over(more: str, left: list[str]) -> None:
    source = "import torch\nfrom apex import amp\nfrom apex.normalization import FusedLayerNorm\n"
    source += "model = torch.nn.Sequential(FusedLayerNorm(4)).cuda()\n"
    source += f"optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n{more}"
    result = migrate(source + "model, optimizer = amp.initialize(model, optimizer)\n", amp="apex")
    assert b"torch.nn.LayerNorm(4)" in result.data
    assert [item.message for item in result.findings if item.code == "NPU510"] == left
