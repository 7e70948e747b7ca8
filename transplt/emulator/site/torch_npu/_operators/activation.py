"""Activations."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

__all__ = [
    "fast_gelu",
    "npu_clipped_swiglu",
    "npu_fast_gelu",
    "npu_geglu",
    "npu_gelu",
    "npu_gelu_mul",
    "npu_linear",
    "npu_mish",
    "npu_silu",
    "npu_silu_",
    "npu_swiglu",
]


def npu_swiglu(input: Any, dim: int = -1) -> Any:
    """silu(first half) * second half along `dim`, whose size is even."""
    if input.shape[dim] % 2:
        raise RuntimeError(f"[emulated npu] npu_swiglu: the size along dim {dim} must be even, not {input.shape[dim]}")
    if not input.is_contiguous():
        raise RuntimeError("[emulated npu] npu_swiglu takes a contiguous input: call contiguous() first")
    gate, up = input.chunk(2, dim)
    return F.silu(gate) * up


def npu_geglu(input: Any, dim: int = -1, approximate: int = 1, activate_left: bool = False) -> tuple[Any, Any]:
    """(one half * gelu(other half), gelu(other half)); the right half is activated unless `activate_left`."""
    left, right = input.chunk(2, dim)
    gate, plain = (left, right) if activate_left else (right, left)
    activated = F.gelu(gate, approximate="tanh" if approximate else "none")
    return plain * activated, activated


def npu_fast_gelu(input: Any) -> Any:
    """x * sigmoid(1.702 x)."""
    return input * torch.sigmoid(1.702 * input)


fast_gelu = npu_fast_gelu


def npu_gelu(input: Any, *, approximate: str = "none") -> Any:
    return F.gelu(input, approximate=approximate)


def npu_gelu_mul(input: Any, *, approximate: str = "none") -> Any:
    """gelu(first half) * second half along the last dimension."""
    gate, up = input.chunk(2, -1)
    return F.gelu(gate, approximate=approximate) * up


def npu_clipped_swiglu(
    x: Any,
    *,
    group_index: Any = None,
    dim: int = -1,
    alpha: float = 1.702,
    limit: float = 7.0,
    bias: float = 1.0,
    interleaved: bool = True,
) -> Any:
    """gate * sigmoid(alpha * gate) * (up + bias), gate and up clipped at `limit`."""
    if group_index is not None:
        raise NotImplementedError("[emulated npu] npu_clipped_swiglu: group_index is not emulated")
    if interleaved:
        gate, up = x.unflatten(dim, (-1, 2)).unbind(dim if dim >= 0 else -1)
    else:
        gate, up = x.chunk(2, dim)
    gate, up = gate.clamp(max=limit), up.clamp(-limit, limit)
    return gate * torch.sigmoid(alpha * gate) * (up + bias)


def npu_silu(input: Any) -> Any:
    return F.silu(input)


def npu_silu_(input: Any) -> Any:
    return F.silu(input, inplace=True)


def npu_mish(input: Any) -> Any:
    return F.mish(input)


def npu_linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """input @ weight.T + bias for a 2-D input."""
    if input.dim() != 2:
        raise RuntimeError(f"[emulated npu] npu_linear takes a 2-D input, not {input.dim()}-D: reshape it first")
    return F.linear(input, weight, bias)
