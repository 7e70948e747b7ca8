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
STEPS = """
import torch
from torch.utils.data import DataLoader
from data import dataset

net = torch.nn.Linear(2, 2).cuda()
optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
for x in DataLoader(dataset, batch_size=4, shuffle=True):
    optimizer.zero_grad()
    net(x.cuda()).sum().backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("source", "tune", "code"),
    [
        (RMS, "rms-norm", "NPU701"),
        (ROTARY, "rotary", "NPU701"),
        (GATED, "swiglu", "NPU701"),
        (MASKED, "finite-masks", "NPU711"),
        (STEPS, "fused-optimizer", "NPU701"),
        (STEPS, "fused-optimizer", "NPU523"),
        (STEPS, "drop-last", "NPU714"),
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


def test_arguments_that_a_loader_has_got() -> None:
    def said(tune: str) -> list[str]:
        result = migrate(STEPS, analysis=True, tune=((tune, ""),))
        return [finding.message[:30] for finding in result.findings if finding.code == "NPU720"]

    assert said("drop-last") == ["DataLoader without pin_memory=", "DataLoader with num_workers=0 "]
    assert said("data-loader") == ["DataLoader with num_workers=0 "]
