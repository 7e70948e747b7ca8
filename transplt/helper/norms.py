"""The normalisation by the root of the mean square that flash-attn has.

Source of arguments and results: ops/rms_norm.py of flash-attn 2.8.4 (Dao-AILab/flash-attention@0251105).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

__all__ = ["RMSNorm", "rms_norm"]


def rms_norm(x: torch.Tensor, weight: torch.Tensor, epsilon: float) -> torch.Tensor:
    """flash_attn.ops.rms_norm.rms_norm: in float32, over the last dimension; the result has the dtype of x."""
    kind = torch.promote_types(x.dtype, torch.float32)
    wide = x.to(kind)
    normal = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + epsilon)
    return (normal * weight.to(kind)).to(x.dtype)


class RMSNorm(nn.Module):  # type: ignore[misc]
    """flash_attn.ops.rms_norm.RMSNorm, with the same parameters."""

    def __init__(self, hidden_size: int, eps: float = 1e-5, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(hidden_size, device=device, dtype=dtype))
        self.register_parameter("bias", None)

    def reset_parameters(self) -> None:
        """All weights are 1."""
        nn.init.ones_(self.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x (..., hidden_size)."""
        return rms_norm(x, self.weight, self.eps)
