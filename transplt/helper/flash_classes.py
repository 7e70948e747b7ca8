"""The modules of flash-attn that hold its functions and no weights but projections.

Source of arguments and results: flash_attention.py of flash-attn 1.0.9 (FlashAttention, FlashMHA), modules/mha.py of
2.8.4 (the others), Dao-AILab/flash-attention@0251105.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from transplt.helper.attention import flash_attn_kvpacked_func, flash_attn_qkvpacked_func
from transplt.helper.attention_varlen import flash_attn_varlen_kvpacked_func, flash_attn_varlen_qkvpacked_func
from transplt.helper.padding import pad_input, unpad_input_of_four

__all__ = ["FlashAttention", "FlashCrossAttention", "FlashMHA", "FlashSelfAttention"]


class FlashAttention(nn.Module):  # type: ignore[misc]
    """flash_attn.flash_attention.FlashAttention of flash-attn 1; returns (out, None)."""

    def __init__(
        self, softmax_scale: float | None = None, attention_dropout: float = 0.0, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.softmax_scale, self.dropout_p = softmax_scale, attention_dropout

    def forward(
        self,
        qkv: torch.Tensor,
        key_padding_mask: torch.Tensor | None = None,
        causal: bool = False,
        cu_seqlens: torch.Tensor | None = None,
        max_s: int | None = None,
        need_weights: bool = False,
    ) -> tuple[torch.Tensor, None]:
        """qkv (batch, sequence, 3, heads, size), with a mask (batch, sequence) of the rows that count, 0 elsewhere; or
        (all, 3, heads, size) with `cu_seqlens` and `max_s`.
        """
        assert not need_weights
        dropout = self.dropout_p if self.training else 0.0
        given: dict[str, Any] = {"softmax_scale": self.softmax_scale, "causal": causal}
        if cu_seqlens is not None:
            return flash_attn_varlen_qkvpacked_func(qkv, cu_seqlens, max_s or 0, dropout, **given), None
        if key_padding_mask is None:
            return flash_attn_qkvpacked_func(qkv, dropout, **given), None
        rows, indices, starts, longest = unpad_input_of_four(qkv, key_padding_mask)
        out = flash_attn_varlen_qkvpacked_func(rows, starts, longest, dropout, **given)
        return pad_input(out, indices, *qkv.shape[:2]), None


class FlashMHA(nn.Module):  # type: ignore[misc]
    """flash_attn.flash_attention.FlashMHA of flash-attn 1, with the same parameters; returns (out, None)."""

    def __init__(
        self, embed_dim: int, num_heads: int, bias: bool = True, batch_first: bool = True,
        attention_dropout: float = 0.0, causal: bool = False, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        assert batch_first and embed_dim % num_heads == 0
        super().__init__()
        self.embed_dim, self.num_heads, self.causal = embed_dim, num_heads, causal
        self.head_dim = embed_dim // num_heads
        self.Wqkv = nn.Linear(embed_dim, 3 * embed_dim, bias=bias, device=device, dtype=dtype)
        self.inner_attn = FlashAttention(attention_dropout=attention_dropout)
        self.out_proj = nn.Linear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)

    def forward(
        self, x: torch.Tensor, key_padding_mask: torch.Tensor | None = None, need_weights: bool = False
    ) -> tuple[torch.Tensor, None]:
        """x (batch, sequence, size), the mask as for FlashAttention."""
        qkv = self.Wqkv(x).unflatten(-1, (3, self.num_heads, -1))
        out, weights = self.inner_attn(qkv, key_padding_mask, need_weights=need_weights, causal=self.causal)
        return self.out_proj(out.flatten(-2)), weights


class FlashSelfAttention(nn.Module):  # type: ignore[misc]
    """flash_attn.modules.mha.FlashSelfAttention."""

    def __init__(
        self, causal: bool = False, softmax_scale: float | None = None, attention_dropout: float = 0.0,
        window_size: tuple[int, int] = (-1, -1), alibi_slopes: torch.Tensor | None = None, deterministic: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.causal, self.softmax_scale, self.window_size = causal, softmax_scale, window_size
        self.drop, self.deterministic = nn.Dropout(attention_dropout), deterministic
        self.register_buffer("alibi_slopes", alibi_slopes, persistent=False)

    def forward(
        self,
        qkv: torch.Tensor,
        causal: bool | None = None,
        cu_seqlens: torch.Tensor | None = None,
        max_seqlen: int | None = None,
    ) -> Any:
        """qkv (batch, sequence, 3, heads, size), or (all, 3, heads, size) with `cu_seqlens`."""
        given = _given_to_flash(self, causal)
        if cu_seqlens is None:
            return flash_attn_qkvpacked_func(qkv, **given)
        return flash_attn_varlen_qkvpacked_func(qkv, cu_seqlens, max_seqlen or 0, **given)


class FlashCrossAttention(nn.Module):  # type: ignore[misc]
    """flash_attn.modules.mha.FlashCrossAttention."""

    def __init__(
        self, causal: bool = False, softmax_scale: float | None = None, attention_dropout: float = 0.0,
        alibi_slopes: torch.Tensor | None = None, window_size: tuple[int, int] = (-1, -1), deterministic: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.causal, self.softmax_scale, self.window_size = causal, softmax_scale, window_size
        self.drop, self.deterministic = nn.Dropout(attention_dropout), deterministic
        self.register_buffer("alibi_slopes", alibi_slopes, persistent=False)

    def forward(
        self,
        q: torch.Tensor,
        kv: torch.Tensor,
        causal: bool | None = None,
        cu_seqlens: torch.Tensor | None = None,
        max_seqlen: int | None = None,
        cu_seqlens_k: torch.Tensor | None = None,
        max_seqlen_k: int | None = None,
    ) -> Any:
        """q (batch, queries, heads, size) and kv (batch, keys, 2, heads, size); (all, ...) with `cu_seqlens`."""
        given = _given_to_flash(self, causal)
        if cu_seqlens is None or cu_seqlens_k is None:
            return flash_attn_kvpacked_func(q, kv, **given)
        return flash_attn_varlen_kvpacked_func(
            q, kv, cu_seqlens, cu_seqlens_k, max_seqlen or 0, max_seqlen_k or 0, **given
        )


def _given_to_flash(module: Any, causal: bool | None) -> dict[str, Any]:
    return {
        "dropout_p": module.drop.p if module.training else 0.0,
        "softmax_scale": module.softmax_scale,
        "causal": module.causal if causal is None else causal,
        "window_size": module.window_size,
        "alibi_slopes": module.alibi_slopes,
    }
