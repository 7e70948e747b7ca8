"""A comment keeps a tuning of an operator from a line, with all that would have gone with it."""

from __future__ import annotations

import pytest

from tests.harness import migrate
from tests.tunings.tuned import check_untuned

FLASH = """
import torch
from flash_attn import flash_attn_func

def attend(q: torch.Tensor):
    return flash_attn_func(q, q, q, causal=True)  # transplt: ignore[NPU760]
"""
NATIVE = """
import torch.nn.functional as F
from torch import nn

class Attention(nn.Module):
    def __init__(self):
        self.q = nn.Linear(8, 8)

    def forward(self, x):
        q = self.q(x).view(2, 5, 2, 4)
        return F.scaled_dot_product_attention(q, q, q, is_causal=True)  # transplt: ignore
"""
NORM = """
import torch
from torch import nn

class Norm(nn.Module):
    def __init__(self, dim):
        self.weight = nn.Parameter(torch.ones(dim))

    def _norm(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)

    def forward(self, x):
        normed = self._norm(x)
        return normed * self.weight  # transplt: ignore[NPU761]
"""
ROTARY = """
import torch
from transformers.models.llama.modeling_llama import rotate_half

def rotary(q: torch.Tensor, cos, sin):
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    return q * cos + rotate_half(q) * sin  # transplt: ignore[NPU762]
"""
GATED = """
import torch.nn.functional as F

def gated(x):
    a, b = x.chunk(2, dim=-1)
    return F.silu(a) * b  # transplt: ignore[NPU763]
"""


@pytest.mark.parametrize(
    ("source", "tune", "open_codes"),
    [
        (FLASH, "fusion-attention", ["NPU510"]),
        (NATIVE, "fusion-attention", []),
        (NORM, "rms-norm", []),
        (ROTARY, "rotary", []),
        (GATED, "swiglu", []),
    ],
)
def test_nothing_of_an_edit_is_written(source: str, tune: str, open_codes: list[str]) -> None:
    check_untuned(tune, source, open_codes=open_codes)


def test_the_other_calls_of_a_file_are_written_and_the_import_stays() -> None:
    source = FLASH + "\ndef other(q):\n    return flash_attn_func(q, q, q, softmax_scale=1.0)\n"
    text = migrate(source, tune=(("fusion-attention", ""),)).data.decode()
    assert text.count("npu_fusion_attention") == 1
    assert text.count("flash_attn_func") == 2
    assert "causal_mask" not in text
