"""Indices that only look something up are made in 32 bits."""

from __future__ import annotations

import pytest

from tests.tunings.tuned import check_tuned, check_untuned

TUNE = "int32"
SCRIPT = """
import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = {layer}
        self.parts = nn.ModuleDict(dict(wpe=nn.Embedding(10, 8), fc=nn.Linear(8, 8)))

    def forward(self, x, table):
        {body}
"""


def script(body: str, layer: str = "nn.Embedding(10, 8, padding_idx=0)") -> str:
    return SCRIPT.format(body=body, layer=layer)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("return self.emb(x.long())", "return self.emb(x.int())"),
        ("return self.parts.wpe(x.to(torch.int64))", "return self.parts.wpe(x.to(torch.int32))"),
        ("return F.embedding(x.long(), table)", "return F.embedding(x.int(), table)"),
        ("return torch.index_select(table, 0, x.long())", "return torch.index_select(table, 0, x.int())"),
        (
            "at = torch.arange(0, x.shape[1], dtype=torch.long)\n        return self.emb(at) + self.parts.wpe(at)",
            "at = torch.arange(0, x.shape[1], dtype=torch.int)\n        return self.emb(at) + self.parts.wpe(at)",
        ),
        (
            "at = torch.arange(8, dtype=torch.long).unsqueeze(0).expand(4, 8)\n        return self.emb(at)",
            "at = torch.arange(8, dtype=torch.int).unsqueeze(0).expand(4, 8)\n        return self.emb(at)",
        ),
    ],
)
def test_lookups(before: str, after: str) -> None:
    check_tuned(TUNE, script(before), script(after))


@pytest.mark.parametrize(
    "body",
    [
        "return torch.gather(table, 1, x.long())",
        "return table[x.long()]",
        "return F.one_hot(x.long())",
        "return self.parts.fc(x.long())",
        "return self.other(x.long())",
        "return table.emb(x.long())",
        "return self.emb(x)",
        "at = torch.arange(8, dtype=torch.long)\n        return self.emb(at), at",
        "at = torch.arange(8, dtype=torch.long)\n        at = at + x\n        return self.emb(at)",
        "at = torch.arange(8, dtype=torch.long)\n        return self.emb(at + x)",
        "at = torch.arange(8, dtype=torch.long)\n        if x:\n            at = x\n        return self.emb(at)",
        "at = torch.arange(8)\n        return self.emb(at)",
        "at = torch.zeros(8, dtype=torch.long)\n        return self.emb(at)",
        "return self.emb(torch.tensor(x, dtype=torch.long))",
        "return F.embedding(x.long(), table, max_norm=1.0)",
        "return F.embedding(table, x.long())",
        "return x.long()",
    ],
)
def test_what_may_need_64_bits(body: str) -> None:
    check_untuned(TUNE, script(body))


@pytest.mark.parametrize(
    "body",
    [
        "return F.cross_entropy(table, x.long())",
        "return F.nll_loss(table, x.long())",
        "return F.cross_entropy(table, x.to(torch.int32))",
        "x = x.to(torch.int32)\n        return nn.CrossEntropyLoss()(table, x)",
        "return nn.NLLLoss()(table, x) + F.cross_entropy(table, x)",
    ],
)
def test_targets_stay_and_the_first_loss_says_since_when(body: str) -> None:
    result = check_untuned(TUNE, script(body), open_codes=["NPU771"])
    said = [finding for finding in result.findings if finding.code == "NPU771"]
    assert [finding.level.value for finding in said] == ["info"]
    assert "porting guide" in said[0].message and "not needed since torch 2.1" in said[0].message


def test_losses_whose_targets_are_no_classes() -> None:
    check_untuned(TUNE, script("return F.mse_loss(table, x) + F.binary_cross_entropy(table, x)"))


def test_indices_that_other_files_may_import() -> None:
    check_untuned(TUNE, f"{script('return self.emb(at)')}\n\nat = torch.arange(8, dtype=torch.long)\n")


@pytest.mark.parametrize(
    "layer",
    [
        "nn.Linear(8, 8)",
        "nn.Embedding(10, 8, sparse=True)",
        "nn.Embedding(10, 8, max_norm=1.0)",
        "nn.Embedding(10, 8, 0, 1.0)",
        "nn.EmbeddingBag(10, 8)",
    ],
)
def test_layers_that_do_more_than_look_up(layer: str) -> None:
    check_untuned(TUNE, script("return self.emb(x.long())", layer))


def test_a_layer_that_may_be_another_one() -> None:
    source = script("return self.emb(x.long())").replace(
        "self.parts =", "self.emb = nn.Linear(8, 8)\n        self.parts ="
    )
    check_untuned(TUNE, source)
