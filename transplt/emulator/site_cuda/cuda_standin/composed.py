"""Operators for which PyTorch has a way of its own on CUDA, taken as on any other device: convolution and attention.

PyTorch's C++ asks for cuDNN and for fused attention when the device of a tensor is CUDA; a CPU build has neither.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from .kernel import boxed

_aten: Any = torch.ops.aten
_libraries: list[Any] = []


def attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """scaled_dot_product_attention, always in its composed form, which adds any mask as numbers."""
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        kept = torch.zeros(attn_mask.shape, dtype=query.dtype, device=query.device)
        attn_mask = kept.masked_fill(attn_mask.logical_not(), float("-inf"))
    return _aten._scaled_dot_product_attention_math(
        query, key, value, attn_mask, dropout_p, is_causal, None, scale=scale, enable_gqa=enable_gqa
    )[0]


def install_composed() -> None:
    """Attention is composed of differentiable operators: our form goes before autograd, as PyTorch's does."""
    aten = torch.library.Library("aten", "IMPL")
    _libraries.append(aten)
    for key in ("CUDA", "AutogradCUDA"):
        aten.impl("scaled_dot_product_attention", attention, key)


def _widening(op: Any) -> Callable[..., Any]:
    """softmax of half tensors that gives float32, which CUDA does in one kernel: the CPU's takes two."""

    def forward(self: Any, dim: int, half_to_float: bool) -> Any:
        return boxed(op, self.float() if half_to_float else self, dim, False)

    return forward


def _narrowing(op: Any) -> Callable[..., Any]:
    def backward(grad_output: Any, output: Any, dim: int, input_dtype: Any) -> Any:
        return boxed(op, grad_output, output, dim, grad_output.dtype).to(input_dtype)

    return backward


def _no(*args: Any) -> bool:
    """There is no cuDNN, and no MIOpen, here."""
    return False


def kernels() -> dict[str, Callable[..., Any]]:
    """Operator name (without aten::) -> kernel."""
    return {
        "convolution": functools.partial(boxed, _aten.convolution.default),
        "convolution_backward": functools.partial(boxed, _aten.convolution_backward.default),
        "_softmax": _widening(_aten._softmax.default),
        "_log_softmax": _widening(_aten._log_softmax.default),
        "_softmax_backward_data": _narrowing(_aten._softmax_backward_data.default),
        "_log_softmax_backward_data": _narrowing(_aten._log_softmax_backward_data.default),
        **dict.fromkeys(("_use_cudnn_ctc_loss", "_use_cudnn_ctc_loss.Tensor"), _no),
        **dict.fromkeys(("_use_miopen_ctc_loss", "_use_miopen_ctc_loss.Tensor"), _no),
    }
