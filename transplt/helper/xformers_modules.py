"""Functions and modules of xformers.ops beside attention.

Source of arguments and results: ops/swiglu_op.py, unbind.py and indexing.py of xformers
(facebookresearch/xformers@ca6d2aa0).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

__all__ = ["SwiGLU", "index_select_cat", "scaled_index_add", "swiglu"]


class SwiGLU(nn.Module):  # type: ignore[misc]
    """xformers.ops.SwiGLU, with the same parameters."""

    def __init__(
        self,
        in_features: int,
        hidden_features: int,
        out_features: int | None = None,
        bias: bool = True,
        *,
        _pack_weights: bool = True,
    ) -> None:
        super().__init__()
        out_features, hidden_features = out_features or in_features, hidden_features or in_features
        self.in_features, self.hidden_features, self.out_features = in_features, hidden_features, out_features
        self.w12 = nn.Linear(in_features, 2 * hidden_features, bias=bias) if _pack_weights else None
        if not _pack_weights:
            self.w1 = nn.Linear(in_features, hidden_features, bias=bias)
            self.w2 = nn.Linear(in_features, hidden_features, bias=bias)
        self.w3 = nn.Linear(hidden_features, out_features, bias=bias)
        self.op: Any = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x (..., in_features) -> (..., out_features)."""
        gate, up = (self.w1(x), self.w2(x)) if self.w12 is None else self.w12(x).chunk(2, -1)
        return self.w3(F.silu(gate) * up)


def swiglu(
    x: torch.Tensor,
    w1: torch.Tensor,
    b1: torch.Tensor | None,
    w2: torch.Tensor,
    b2: torch.Tensor | None,
    w3: torch.Tensor,
    b3: torch.Tensor | None,
    *,
    op: Any = None,
) -> torch.Tensor:
    """xformers.ops.swiglu: silu(x w1 + b1) * (x w2 + b2), times w3 plus b3; weights are those of linear layers."""
    return F.linear(F.silu(F.linear(x, w1, b1)) * F.linear(x, w2, b2), w3, b3)


def index_select_cat(sources: Sequence[torch.Tensor], indices: Sequence[torch.Tensor]) -> torch.Tensor:
    """xformers.ops.index_select_cat: rows of some tensors by indices, all in one dimension."""
    return torch.cat([each.index_select(0, rows.long()).flatten() for each, rows in zip(sources, indices, strict=True)])


def scaled_index_add(
    input: torch.Tensor,
    index: torch.Tensor,
    source: torch.Tensor,
    scaling: torch.Tensor | None = None,
    alpha: float = 1.0,
) -> torch.Tensor:
    """xformers.ops.scaled_index_add: alpha * scaling * source is added to rows of `input`, in place."""
    return input.index_add_(0, index, source if scaling is None else (scaling * source).to(input.dtype), alpha=alpha)
