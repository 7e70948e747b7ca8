"""Normalisations."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

__all__ = [
    "npu_add_layer_norm",
    "npu_add_rms_norm",
    "npu_deep_norm",
    "npu_group_norm_silu",
    "npu_group_norm_swish",
    "npu_layer_norm_eval",
    "npu_rms_norm",
]


def _rstd(x: Any, epsilon: float) -> Any:
    return torch.rsqrt(x.float().square().mean(-1, keepdim=True) + epsilon)


def npu_rms_norm(input: Any, gamma: Any, epsilon: float = 1e-6) -> tuple[Any, Any]:
    """(x / rms(x) * gamma, 1 / rms(x)) over the dimensions of gamma, computed in float32; the result is as x is."""
    if gamma.dtype not in (input.dtype, torch.float32) or tuple(gamma.shape) != tuple(input.shape[-gamma.dim() :]):
        raise RuntimeError(
            "[emulated npu] npu_rms_norm takes gamma in the dtype of the input or float32, and of its last sizes, not "
            f"{gamma.dtype} {tuple(gamma.shape)} for {input.dtype} {tuple(input.shape)}"
        )
    dims = tuple(range(-gamma.dim(), 0))
    rstd = torch.rsqrt(input.float().square().mean(dims, keepdim=True) + epsilon)
    return (input.float() * rstd * gamma.float()).to(input.dtype), rstd


def npu_add_rms_norm(x1: Any, x2: Any, gamma: Any, epsilon: float = 1e-6) -> tuple[Any, Any, Any]:
    """npu_rms_norm of x1 + x2, and the sum: (y, rstd, x1 + x2)."""
    total = x1 + x2
    return (*npu_rms_norm(total, gamma, epsilon), total)


def npu_add_layer_norm(
    x1: Any, x2: Any, gamma: Any, beta: Any, epsilon: float = 1e-5, additional_output: bool = False
) -> tuple[Any, ...]:
    """(layer_norm(x1 + x2), mean, rstd, x1 + x2 if asked for)."""
    total = x1 + x2
    wide = total.float()
    mean = wide.mean(-1, keepdim=True)
    rstd = torch.rsqrt(wide.var(-1, unbiased=False, keepdim=True) + epsilon)
    y = ((wide - mean) * rstd * gamma.float() + beta.float()).to(x1.dtype)
    return y, mean, rstd, total if additional_output else torch.empty(0, dtype=x1.dtype, device=x1.device)


def npu_deep_norm(
    x: Any, gx: Any, beta: Any, gamma: Any, alpha: float = 0.3, epsilon: float = 1e-6
) -> tuple[Any, Any, Any]:
    """(mean, rstd, layer_norm(x * alpha + gx))."""
    total = (x * alpha + gx).float()
    mean = total.mean(-1, keepdim=True)
    rstd = torch.rsqrt(total.var(-1, unbiased=False, keepdim=True) + epsilon)
    return mean, rstd, ((total - mean) * rstd * gamma.float() + beta.float()).to(x.dtype)


def _group_statistics(input: Any, group: int, eps: float) -> tuple[Any, Any]:
    grouped = input.float().reshape(input.shape[0], group, -1)
    return grouped.mean(-1), torch.rsqrt(grouped.var(-1, unbiased=False) + eps)


def npu_group_norm_silu(input: Any, weight: Any, bias: Any, group: int, eps: float = 1e-5) -> tuple[Any, Any, Any]:
    """(silu(group_norm(x)), mean, rstd)."""
    return (F.silu(F.group_norm(input, group, weight, bias, eps)), *_group_statistics(input, group, eps))


def npu_group_norm_swish(
    input: Any, num_groups: int, weight: Any, bias: Any, eps: float = 1e-5, swish_scale: float = 1.0
) -> Any:
    """(g * sigmoid(swish_scale * g), mean, rstd) with g = group_norm(x)."""
    normed = F.group_norm(input, num_groups, weight, bias, eps)
    return (normed * torch.sigmoid(swish_scale * normed), *_group_statistics(input, num_groups, eps))


def npu_layer_norm_eval(
    input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    return F.layer_norm(input, normalized_shape, weight, bias, eps)
