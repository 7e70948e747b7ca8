"""The functions of flash-attn for batches of one length.

Source of arguments and results: flash_attn_interface.py of flash-attn 2.8.4 (Dao-AILab/flash-attention@0251105).
"""

from __future__ import annotations

from typing import Any

import torch

from transplt.helper.attention_core import Sight, attend, scored

__all__ = ["flash_attn_func", "flash_attn_kvpacked_func", "flash_attn_qkvpacked_func"]


def flash_attn_func(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
) -> Any:
    """flash_attn.flash_attn_func by torch's attention, and by torch_npu's on an NPU.

    q (batch, queries, heads, size), k and v (batch, keys, heads that divide those of q, size). Masks end in the bottom
    right corner, and a query that sees no key gets 0. `return_attn_probs` also gives the logarithm of the softmax's
    sum (batch, heads, queries) and, with dropout, the softmax (negative: dropped); without, an empty tensor.
    """
    sight = sight_of(q, softmax_scale, causal, window_size, dropout_p, softcap, alibi_slopes)
    if not return_attn_probs:
        return attend(q, k, v, sight)
    out, total, weights = scored(q, k, v, sight, sight.shift(q.shape[1], k.shape[1]))
    return out, total, weights.to(q.dtype) if dropout_p > 0 else q.new_empty(0)


def flash_attn_kvpacked_func(
    q: torch.Tensor,
    kv: torch.Tensor,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
) -> Any:
    """flash_attn_func with keys and values in one tensor, kv (batch, keys, 2, heads, size)."""
    return flash_attn_func(
        q, kv[:, :, 0], kv[:, :, 1], dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes,
        deterministic, return_attn_probs,
    )  # fmt: skip


def flash_attn_qkvpacked_func(
    qkv: torch.Tensor,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
) -> Any:
    """flash_attn_func with all three in one tensor, qkv (batch, sequence, 3, heads, size)."""
    return flash_attn_func(
        qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2], dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes,
        deterministic, return_attn_probs,
    )  # fmt: skip


def sight_of(
    q: torch.Tensor,
    scale: float | None,
    causal: bool,
    window: tuple[int, int],
    dropout: float = 0.0,
    softcap: float = 0.0,
    slopes: torch.Tensor | None = None,
) -> Sight:
    """What flash-attn's arguments say of scores and keys: causal is a window that ends at the query."""
    scale = q.shape[-1] ** -0.5 if scale is None else float(scale)
    right = 0 if causal else window[1]
    return Sight(scale, window[0], right, dropout, softcap, slopes)
