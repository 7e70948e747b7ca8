"""Rotary position embeddings as flash-attn has them.

Source of arguments and results: layers/rotary.py and ops/triton/rotary.py of flash-attn 2.8.4
(Dao-AILab/flash-attention@0251105).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

__all__ = [
    "RotaryEmbedding",
    "apply_rotary_emb",
    "apply_rotary_emb_kv_",
    "apply_rotary_emb_qkv_",
    "apply_rotary_emb_torch",
]


def apply_rotary_emb(
    x: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    interleaved: bool = False,
    inplace: bool = False,
    seqlen_offsets: int | torch.Tensor = 0,
    cu_seqlens: torch.Tensor | None = None,
    max_seqlen: int | None = None,
) -> torch.Tensor:
    """flash_attn.layers.rotary.apply_rotary_emb, computed in float32; the result has the dtype of x.

    x (batch, sequence, heads, size), or (all, heads, size) with `cu_seqlens`; cos and sin (positions, half of what is
    turned). `inplace` also writes the result into x; what is returned has the gradients.
    """
    if cu_seqlens is None:
        places = torch.arange(x.shape[1], device=x.device)
        places = places + (seqlen_offsets[:, None] if isinstance(seqlen_offsets, torch.Tensor) else seqlen_offsets)
    else:
        starts = cu_seqlens[:-1].long() - seqlen_offsets
        lengths = (cu_seqlens[1:] - cu_seqlens[:-1]).long()
        starts = torch.repeat_interleave(starts, lengths, output_size=x.shape[0])
        places = torch.arange(x.shape[0], device=x.device) - starts
    out = turned_by_places(x, cos, sin, places, interleaved)
    if inplace:
        x.data.copy_(out.detach())
    return out


def apply_rotary_emb_torch(
    x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, interleaved: bool = False
) -> torch.Tensor:
    """flash_attn.layers.rotary.apply_rotary_emb_torch: in the dtype of x, cos and sin.

    x (batch, sequence, heads, size), cos and sin (sequence, half) or (batch, sequence, half).
    """
    turned, rest = x[..., : 2 * cos.shape[-1]], x[..., 2 * cos.shape[-1] :]
    first, second = _rotary_halves(turned, interleaved)
    cos, sin = cos.unsqueeze(-2), sin.unsqueeze(-2)
    return torch.cat((_rotary_joined(first * cos - second * sin, second * cos + first * sin, interleaved), rest), -1)


def apply_rotary_emb_qkv_(
    qkv: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    cos_k: torch.Tensor | None = None,
    sin_k: torch.Tensor | None = None,
    interleaved: bool = False,
    seqlen_offsets: int | torch.Tensor = 0,
    num_heads_q: int | None = None,
) -> torch.Tensor:
    """flash_attn.layers.rotary.apply_rotary_emb_qkv_: turns queries and keys, also in qkv itself.

    qkv (batch, sequence, 3, heads, size), or (batch, sequence, `num_heads_q` + twice the heads of keys, size).
    """
    if qkv.dim() == 5:
        q, k, rest = qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]
    else:
        assert num_heads_q is not None
        heads = (qkv.shape[2] - num_heads_q) // 2
        q, k, rest = qkv.split((num_heads_q, heads, heads), 2)
    q = apply_rotary_emb(q, cos, sin, interleaved, False, seqlen_offsets)
    cos_k, sin_k = cos if cos_k is None else cos_k, sin if sin_k is None else sin_k
    k = apply_rotary_emb(k, cos_k, sin_k, interleaved, False, seqlen_offsets)
    out = torch.stack((q, k, rest), 2) if qkv.dim() == 5 else torch.cat((q, k, rest), 2)
    qkv.data.copy_(out.detach())
    return out


def apply_rotary_emb_kv_(
    kv: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    interleaved: bool = False,
    seqlen_offsets: int | torch.Tensor = 0,
) -> torch.Tensor:
    """flash_attn.layers.rotary.apply_rotary_emb_kv_: turns the keys of kv (batch, sequence, 2, heads, size) in it."""
    k = apply_rotary_emb(kv[:, :, 0], cos, sin, interleaved, False, seqlen_offsets)
    out = torch.stack((k, kv[:, :, 1]), 2)
    kv.data.copy_(out.detach())
    return out


class RotaryEmbedding(nn.Module):  # type: ignore[misc]
    """flash_attn.layers.rotary.RotaryEmbedding: the same buffers (none in checkpoints), tables and calls.

    `forward` turns qkv, or with kv queries and keys; with `scale_base` it is XPos.
    """

    def __init__(
        self,
        dim: int,
        base: float = 10000.0,
        interleaved: bool = False,
        scale_base: float | None = None,
        device: Any = None,
        pos_idx_in_fp32: bool = True,
    ) -> None:
        super().__init__()
        self.dim, self.base, self.interleaved, self.scale_base = dim, float(base), interleaved, scale_base
        self.register_buffer("inv_freq", self._compute_inv_freq(device), persistent=False)
        steps = torch.arange(0, dim, 2, device=device, dtype=torch.float32)
        scale = None if scale_base is None else (steps + 0.4 * dim) / (1.4 * dim)
        self.register_buffer("scale", scale, persistent=False)
        self._seq_len_cached = 0
        self._cos_cached: torch.Tensor | None = None
        self._sin_cached: torch.Tensor | None = None
        self._cos_k_cached: torch.Tensor | None = None
        self._sin_k_cached: torch.Tensor | None = None

    def _compute_inv_freq(self, device: Any = None) -> torch.Tensor:
        steps = torch.arange(0, self.dim, 2, device=device, dtype=torch.float32)
        return torch.reciprocal(self.base ** (steps / self.dim))

    def _update_cos_sin_cache(self, seqlen: int, device: Any = None, dtype: Any = None) -> None:
        """Make tables for positions up to a length, where those that are there do not do."""
        table = self._cos_cached
        fits = table is not None and seqlen <= self._seq_len_cached and table.device == device and table.dtype == dtype
        if table is not None and fits and not (self.training and table.is_inference()):
            return
        self._seq_len_cached = seqlen
        frequencies = self.inv_freq if self.inv_freq.dtype == torch.float32 else self._compute_inv_freq(device)
        angles = torch.outer(torch.arange(seqlen, device=device, dtype=torch.float32), frequencies)
        cos, sin = torch.cos(angles), torch.sin(angles)
        if self.scale is None or self.scale_base is None:
            self._cos_cached, self._sin_cached = cos.to(dtype), sin.to(dtype)
            return
        steps = torch.arange(seqlen, dtype=self.scale.dtype, device=self.scale.device) - seqlen // 2
        scale = self.scale ** (steps / self.scale_base)[:, None]
        self._cos_cached, self._sin_cached = (cos * scale).to(dtype), (sin * scale).to(dtype)
        self._cos_k_cached, self._sin_k_cached = (cos / scale).to(dtype), (sin / scale).to(dtype)

    def forward(
        self,
        qkv: torch.Tensor,
        kv: torch.Tensor | None = None,
        seqlen_offset: int | torch.Tensor = 0,
        max_seqlen: int | None = None,
        num_heads_q: int | None = None,
    ) -> Any:
        """qkv as for apply_rotary_emb_qkv_; or with kv, queries (batch, sequence, heads, size) and kv, which both come
        back. Where the offset is a tensor, `max_seqlen` says how long the tables have to be.
        """
        if max_seqlen is not None:
            self._update_cos_sin_cache(max_seqlen, device=qkv.device, dtype=qkv.dtype)
        elif not isinstance(seqlen_offset, torch.Tensor):
            self._update_cos_sin_cache(qkv.shape[1] + seqlen_offset, device=qkv.device, dtype=qkv.dtype)
        cos, sin, turn = self._cos_cached, self._sin_cached, self.interleaved
        cos_k, sin_k = (cos, sin) if self.scale is None else (self._cos_k_cached, self._sin_k_cached)
        assert cos is not None and sin is not None and cos_k is not None and sin_k is not None
        if kv is None:
            return apply_rotary_emb_qkv_(qkv, cos, sin, cos_k, sin_k, turn, seqlen_offset, num_heads_q)
        q = apply_rotary_emb(qkv, cos, sin, turn, True, seqlen_offset)
        return q, apply_rotary_emb_kv_(kv, cos_k, sin_k, turn, seqlen_offset)


def turned_by_places(
    x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, places: torch.Tensor, interleaved: bool
) -> torch.Tensor:
    """x (..., heads, size) turned by the angles of its places, which are rows of cos and sin; in float32."""
    kind = torch.promote_types(x.dtype, torch.float32)
    angles = (cos[places].to(kind), sin[places].to(kind))
    return apply_rotary_emb_torch(x.to(kind), *angles, interleaved).to(x.dtype)


def _rotary_halves(x: torch.Tensor, interleaved: bool) -> tuple[torch.Tensor, torch.Tensor]:
    if interleaved:
        return x[..., ::2], x[..., 1::2]
    first, second = x.chunk(2, -1)
    return first, second


def _rotary_joined(first: torch.Tensor, second: torch.Tensor, interleaved: bool) -> torch.Tensor:
    return torch.stack((first, second), -1).flatten(-2) if interleaved else torch.cat((first, second), -1)
