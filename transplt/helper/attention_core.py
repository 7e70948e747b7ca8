"""Attention that skips positions, for the functions that are called as those of flash-attn and xformers.

Shapes are (batch, sequence, heads, head size). A key j is seen by a query i where
i + shift - left <= j <= i + shift + right; `left` and `right` are -1 where nothing bounds them.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple

import torch
from torch.nn import functional as F

_UNBOUND = 2147483647
_HALF = (torch.float16, torch.bfloat16)


class Sight(NamedTuple):
    """Which keys a query sees, and what is done to its scores: scale, softcap (0: none), ALiBi slopes of the heads
    (heads,) or (batch, heads), and a bias (batch, heads, queries, keys); and the share of them that is dropped.
    """

    scale: float
    left: int = -1
    right: int = -1
    dropout: float = 0.0
    softcap: float = 0.0
    slopes: Any = None
    bias: Any = None
    top_left: bool = False

    def shift(self, queries: int, keys: int) -> int:
        """How far the first query is moved: masks of flash-attn end in the bottom right corner."""
        return 0 if self.top_left else keys - queries


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, sight: Sight, shift: int | None = None) -> torch.Tensor:
    """softmax(mask(scale q k^T)) v. A query that sees no key gets 0, as in flash-attn, and sends no gradient.

    The result is contiguous, as theirs: programs take views of it.
    """
    queries, keys = q.shape[1], k.shape[1]
    shift = sight.shift(queries, keys) if shift is None else shift
    first, last = _seeing(queries, keys, shift, sight)
    if first or last < queries:
        rows = q[:, first:last]
        bias = sight.bias if sight.bias is None else sight.bias[:, :, first:last]
        if not rows.shape[1]:
            return F.pad(rows, (0, v.shape[-1] - q.shape[-1], 0, 0, 0, queries))
        inner = attend(rows, k, v, sight._replace(bias=bias), shift + first)
        return F.pad(inner, (0, 0, 0, 0, first, queries - last))
    left = -1 if queries - 1 + shift <= sight.left else sight.left
    right = -1 if shift + sight.right >= keys - 1 else sight.right
    sight = sight._replace(left=left, right=right)
    mode = fused_mode(q, k, v, sight, shift == keys - queries, shift == 0)
    if mode is not None:
        return fused(q, k, v, sight, mode, "BSND")
    if sight.softcap > 0 or sight.slopes is not None:
        return scored(q, k, v, sight, shift)[0]
    return _scaled_dot_product(q, k, v, sight, shift)


def _seeing(queries: int, keys: int, shift: int, sight: Sight) -> tuple[int, int]:
    """The queries from the first that sees a key to behind the last one."""
    first = max(0, -(shift + sight.right)) if sight.right >= 0 else 0
    last = min(queries, keys + sight.left - shift) if sight.left >= 0 else queries
    return (first, last) if keys and first < last else (0, 0)


def seen(queries: int, keys: int, sight: Sight, shift: int, device: torch.device) -> torch.Tensor | None:
    """True where a key is seen, (queries, keys); None where all are."""
    if sight.left < 0 and sight.right < 0:
        return None
    offset = torch.arange(keys, device=device) - torch.arange(queries, device=device)[:, None] - shift
    if sight.left < 0:
        return offset <= sight.right
    return offset >= -sight.left if sight.right < 0 else (offset >= -sight.left) & (offset <= sight.right)


def as_many_heads(k: torch.Tensor, heads: int) -> torch.Tensor:
    """Keys or values with one head for each of the query, where several of these share one."""
    return k if k.shape[2] == heads else k.repeat_interleave(heads // k.shape[2], 2)


def _scaled_dot_product(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, sight: Sight, shift: int) -> torch.Tensor:
    causal = sight.left < 0 and sight.right == 0 and shift == 0 and sight.bias is None
    mask = None if causal else seen(q.shape[1], k.shape[1], sight, shift, q.device)
    if sight.bias is not None:
        mask = sight.bias if mask is None else sight.bias.masked_fill(~mask, -float("inf"))
    heads = q.shape[2]
    every = (q, as_many_heads(k, heads), as_many_heads(v, heads))
    query, key, value = (each.transpose(1, 2) for each in every)
    out = F.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, dropout_p=sight.dropout, is_causal=causal, scale=sight.scale
    )
    return out.transpose(1, 2).contiguous().to(q.dtype)


# --- by its definition, where something is asked for that no kernel gives --------------------------------------------


def scored(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, sight: Sight, shift: int, visible: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Attention in float32: the result, the logarithm of the sum of the exponentials (batch, heads, queries; infinite
    where no key is seen), and the softmax (batch, heads, queries, keys), negative where it was dropped.

    `visible`, which broadcasts to the softmax, takes the place of what `sight` says of keys.
    """
    kind = torch.promote_types(q.dtype, torch.float32)
    heads = q.shape[2]
    every = (q, as_many_heads(k, heads), as_many_heads(v, heads))
    query, key, value = (each.transpose(1, 2).to(kind) for each in every)
    scores = query @ key.transpose(-1, -2) * sight.scale
    if sight.softcap > 0:
        scores = torch.tanh(scores / sight.softcap) * sight.softcap
    if sight.slopes is not None:
        scores = scores + _slanted(sight.slopes, q.shape[1], k.shape[1], shift).to(kind)
    if sight.bias is not None:
        scores = scores + sight.bias
    visible = seen(q.shape[1], k.shape[1], sight, shift, q.device) if visible is None else visible
    if visible is not None:
        scores = scores.masked_fill(~visible, -float("inf"))
    if not k.shape[1]:
        total = scores.new_full(scores.shape[:-1], float("inf"))
        return F.pad(q[:, :, :, :0], (0, v.shape[-1])), total, scores
    blind = (scores == -float("inf")).all(-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(blind, 0.0), -1).masked_fill(blind, 0.0)
    total = scores.detach().logsumexp(-1).masked_fill(blind[..., 0], float("inf"))
    signed = weights.detach()
    if sight.dropout > 0:
        kept = torch.rand_like(weights) >= sight.dropout
        signed = torch.where(kept, signed, -signed)
        weights = weights * kept / (1 - sight.dropout)
    return (weights @ value).transpose(1, 2).contiguous().to(q.dtype), total, signed


def _slanted(slopes: torch.Tensor, queries: int, keys: int, shift: int) -> torch.Tensor:
    """ALiBi: minus slope times distance, (1 or batch, heads, queries, keys)."""
    rows = torch.arange(queries, device=slopes.device)[:, None] + shift
    distance = (rows - torch.arange(keys, device=slopes.device)).abs()
    return -slopes.reshape(-1, slopes.shape[-1], 1, 1).float() * distance


# --- the fused operator of torch_npu ---------------------------------------------------------------------------------


def fused_mode(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, sight: Sight, bottom_right: bool, top_left: bool
) -> int | None:
    """The sparse mode in which torch_npu's fused attention computes this (0 without a mask); None where it does not.

    Source: op-plugin 12c385b, docs/zh/custom_APIs/torch_npu/torch_npu-npu_fusion_attention.md.
    """
    if q.device.type != "npu" or q.dtype not in _HALF or not q.dtype == k.dtype == v.dtype:
        return None
    heads, size = q.shape[-2:]
    fits = k.shape == v.shape and k.shape[-1] == size <= 768 and heads <= 256 and heads % k.shape[-2] == 0
    longest = max(q.shape[-3], k.shape[-3])
    if not fits or min(q.shape[-3], k.shape[-3]) < 1 or longest > 2**20 or sight.dropout >= 1:
        return None
    if sight.softcap > 0 or sight.slopes is not None or sight.bias is not None:
        return None
    if sight.left < 0 and sight.right < 0:
        return 0
    if bottom_right:
        return 3 if sight.left < 0 and sight.right == 0 else 4
    return 2 if top_left and sight.left < 0 and sight.right == 0 else None


def fused(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, sight: Sight, mode: int, layout: str, **lengths: list[int]
) -> torch.Tensor:
    """torch_npu.npu_fusion_attention, `layout` BSND or TND; in its modes 2 to 4 it takes one triangle for all sizes."""
    given: dict[str, Any] = {"keep_prob": 1.0 - sight.dropout, "scale": sight.scale, **lengths}
    if mode:
        given.update(atten_mask=_triangle(q.device), sparse_mode=mode)
    if mode == 4:
        given["pre_tockens"] = _UNBOUND if sight.left < 0 else sight.left
        given["next_tockens"] = _UNBOUND if sight.right < 0 else sight.right
    operator = import_module("torch_npu").npu_fusion_attention
    out: torch.Tensor = operator(q, k, v, q.shape[-2], layout, **given)[0]
    return out.contiguous()


@lru_cache(8)
def _triangle(device: torch.device) -> torch.Tensor:
    """True above the diagonal, 2048 x 2048, made once for a device."""
    with torch.inference_mode(False):
        return torch.triu(torch.ones(2048, 2048, dtype=torch.bool, device=device), diagonal=1)
