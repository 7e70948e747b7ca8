"""What the analysis says of a place goes when a tuning has written that place anew."""

from __future__ import annotations

import pytest

from tests.harness import migrate

RMS = """
import torch
from torch import nn

class RMSNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight
"""
ROTARY = """
import torch

def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)

def rotary(q, cos, sin):
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    return q * cos + rotate_half(q) * sin
"""
GATED = """
import torch.nn.functional as F

def gated(x):
    a, b = x.chunk(2, dim=-1)
    return F.silu(a) * b
"""
MASKED = """
import torch

def weights(x, mask):
    x = x.masked_fill(mask, float("-inf"))
    return torch.softmax(x, dim=-1)
"""


@pytest.mark.parametrize(
    ("source", "tune", "code"),
    [
        (RMS, "rms-norm", "NPU701"),
        (ROTARY, "rotary", "NPU701"),
        (GATED, "swiglu", "NPU701"),
        (MASKED, "finite-masks", "NPU711"),
    ],
)
def test_a_place_that_a_tuning_wrote_anew(source: str, tune: str, code: str) -> None:
    def said(**settings: object) -> list[str]:
        return [finding.code for finding in migrate(source, analysis=True, **settings).findings if not finding.applied]

    assert code in said()
    assert code not in said(tune=((tune, ""),))
    assert code in said(tune=(("masked-assignment", ""),))


def test_a_limit_that_is_said_for_several_places_stays() -> None:
    two = GATED + "\ndef plain(x):\n    return F.silu(x)\n"
    result = migrate(two, analysis=True, tune=(("swiglu", ""),))
    limits = [finding for finding in result.findings if finding.api == "torch.nn.functional.silu"]
    assert [finding.code for finding in limits] == ["NPU522"]
