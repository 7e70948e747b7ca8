"""The functions of flash-attn for sequences of several lengths, laid end to end.

Source of arguments and results: flash_attn_interface.py of flash-attn 2.8.4 (Dao-AILab/flash-attention@0251105); of the
functions named `unpadded`, flash-attn 1.0.9.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch.nn import functional as F

from transplt.helper.attention import sight_of
from transplt.helper.attention_core import Sight, attend, fused, fused_mode, scored

__all__ = [
    "flash_attn_unpadded_func",
    "flash_attn_unpadded_kvpacked_func",
    "flash_attn_unpadded_qkvpacked_func",
    "flash_attn_varlen_func",
    "flash_attn_varlen_kvpacked_func",
    "flash_attn_varlen_qkvpacked_func",
]


def flash_attn_varlen_func(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    block_table: torch.Tensor | None = None,
) -> Any:
    """flash_attn.flash_attn_varlen_func: each sequence attends to itself alone.

    q (all queries, heads, size), k and v (all keys, heads, size); `cu_seqlens_q`, `cu_seqlens_k` (sequences + 1,) are
    where each begins, and where the last ends. With `block_table` (sequences, blocks) k and v are (blocks, block size,
    heads, size). The lengths come to the host once for a tensor of them, not once for a call.
    """
    sight = sight_of(q, softmax_scale, causal, window_size, dropout_p, softcap, alibi_slopes)
    return _varlen_attended(q, k, v, cu_seqlens_q, cu_seqlens_k, sight, return_attn_probs, block_table)


def flash_attn_varlen_kvpacked_func(
    q: torch.Tensor,
    kv: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
) -> Any:
    """flash_attn_varlen_func with keys and values in one tensor, kv (all keys, 2, heads, size)."""
    sight = sight_of(q, softmax_scale, causal, window_size, dropout_p, softcap, alibi_slopes)
    return _varlen_attended(q, kv[:, 0], kv[:, 1], cu_seqlens_q, cu_seqlens_k, sight, return_attn_probs)


def flash_attn_varlen_qkvpacked_func(
    qkv: torch.Tensor,
    cu_seqlens: torch.Tensor,
    max_seqlen: int,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
) -> Any:
    """flash_attn_varlen_func with all three in one tensor, qkv (all, 3, heads, size)."""
    sight = sight_of(qkv, softmax_scale, causal, window_size, dropout_p, softcap, alibi_slopes)
    return _varlen_attended(qkv[:, 0], qkv[:, 1], qkv[:, 2], cu_seqlens, cu_seqlens, sight, return_attn_probs)


def flash_attn_unpadded_func(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    dropout_p: float,
    softmax_scale: float | None = None,
    causal: bool = False,
    return_attn_probs: bool = False,
    deterministic: bool = False,
) -> Any:
    """flash_attn_varlen_func as flash-attn 1 has it: its causal mask begins in the top left corner."""
    sight = sight_of(q, softmax_scale, causal, (-1, -1), dropout_p)._replace(top_left=True)
    return _varlen_attended(q, k, v, cu_seqlens_q, cu_seqlens_k, sight, return_attn_probs)


def flash_attn_unpadded_kvpacked_func(
    q: torch.Tensor,
    kv: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    dropout_p: float,
    softmax_scale: float | None = None,
    causal: bool = False,
    return_attn_probs: bool = False,
    deterministic: bool = False,
) -> Any:
    """flash_attn_unpadded_func with keys and values in one tensor, kv (all keys, 2, heads, size)."""
    sight = sight_of(q, softmax_scale, causal, (-1, -1), dropout_p)._replace(top_left=True)
    return _varlen_attended(q, kv[:, 0], kv[:, 1], cu_seqlens_q, cu_seqlens_k, sight, return_attn_probs)


def flash_attn_unpadded_qkvpacked_func(
    qkv: torch.Tensor,
    cu_seqlens: torch.Tensor,
    max_seqlen: int,
    dropout_p: float,
    softmax_scale: float | None = None,
    causal: bool = False,
    return_attn_probs: bool = False,
    deterministic: bool = False,
) -> Any:
    """flash_attn_unpadded_func with all three in one tensor, qkv (all, 3, heads, size)."""
    sight = sight_of(qkv, softmax_scale, causal, (-1, -1), dropout_p)._replace(top_left=True)
    return _varlen_attended(qkv[:, 0], qkv[:, 1], qkv[:, 2], cu_seqlens, cu_seqlens, sight, return_attn_probs)


def host_ends(ends: torch.Tensor) -> list[int]:
    """A tensor of integers as a list on the host, read once until somebody writes to it."""
    try:
        version = ends._version
    except RuntimeError:  # a tensor of inference mode counts no writes
        return [int(each) for each in ends.tolist()]
    known: tuple[int, list[int]] | None = getattr(ends, "host_ends", None)
    if known is None or known[0] != version:
        known = version, [int(each) for each in ends.tolist()]
        ends.host_ends = known
    return known[1]


def attend_in_blocks(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, q_ends: list[int], k_ends: list[int], sight: Sight
) -> torch.Tensor:
    """Attention of sequences that lie end to end, (all, heads, size); `q_ends`, `k_ends`: 0 and where each ends.

    Where torch_npu's operator does not take them, sequences of one length are one batch, others one after the other.
    Queries behind the last sequence get 0.
    """
    sizes = [(b - a, d - c) for (a, b), (c, d) in zip(pairwise(q_ends), pairwise(k_ends), strict=True)]
    mode = _varlen_mode(q, k, v, sizes, sight)
    if mode is not None and q_ends[-1] == q.shape[0] and k_ends[-1] == k.shape[0]:
        used = [at for at, size in enumerate(sizes, 1) if any(size)]
        lengths = [[ends[at] for at in used] for ends in (q_ends, k_ends)]
        return fused(q, k, v, sight, mode, "TND", actual_seq_qlen=lengths[0], actual_seq_kvlen=lengths[1])
    if len({*sizes}) == 1:
        (queries, keys), count = sizes[0], len(sizes)
        k, v = (each[: count * keys].reshape(count, keys, *each.shape[1:]) for each in (k, v))
        out = attend(q[: count * queries].reshape(count, queries, *q.shape[1:]), k, v, sight).flatten(0, 1)
    else:
        parts = [
            attend(q[None, a:b], k[None, c:d], v[None, c:d], _of_one(sight, at))[0]
            for at, ((a, b), (c, d)) in enumerate(zip(pairwise(q_ends), pairwise(k_ends), strict=True))
        ]
        out = torch.cat(parts) if parts else q[:0]
    return F.pad(out, (0, 0, 0, 0, 0, q.shape[0] - out.shape[0]))


def _varlen_mode(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, sizes: list[tuple[int, int]], sight: Sight
) -> int | None:
    """The sparse mode of the fused operator, which takes up to 1024 sequences in which every query sees a key."""
    mode = fused_mode(q, k, v, sight, not sight.top_left, sight.top_left)
    used = [size for size in sizes if any(size)]
    if mode is None or not 0 < len(used) <= 1024 or not all(all(size) for size in used):
        return None
    blind = mode in (3, 4) and sight.right >= 0 and any(queries > keys + sight.right for queries, keys in used)
    return None if blind else mode


def _of_one(sight: Sight, at: int) -> Sight:
    """For one of the sequences: its own slopes, where each has some."""
    own = sight.slopes is not None and sight.slopes.dim() == 2
    return sight._replace(slopes=sight.slopes[at]) if own and sight.slopes is not None else sight


def _varlen_attended(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, q_starts: torch.Tensor, k_starts: torch.Tensor, sight: Sight,
    with_sums: bool, blocks: torch.Tensor | None = None,
) -> Any:  # fmt: skip
    q_ends, k_ends = host_ends(q_starts), host_ends(k_starts)
    if blocks is not None:
        k, v = (_gathered(each, blocks, k_ends) for each in (k, v))
    if not with_sums:
        return attend_in_blocks(q, k, v, q_ends, k_ends, sight)
    outs, sums, weights = [], [], []
    pairs = [*zip(pairwise(q_ends), pairwise(k_ends), strict=True)]
    longest = [max((b - a for a, b in each), default=0) for each in zip(*pairs, strict=True)]
    for at, ((a, b), (c, d)) in enumerate(pairs):
        own = _of_one(sight, at)
        out, total, weight = scored(q[None, a:b], k[None, c:d], v[None, c:d], own, own.shift(b - a, d - c))
        outs.append(out[0])
        sums.append(total[0])
        weights.append(F.pad(weight, (0, longest[1] - (d - c), 0, longest[0] - (b - a))))
    softmax = torch.cat(weights).to(q.dtype) if sight.dropout > 0 else q.new_empty(0)
    return torch.cat(outs), torch.cat(sums, -1), softmax


def _gathered(pages: torch.Tensor, blocks: torch.Tensor, ends: list[int]) -> torch.Tensor:
    """The keys or values of each sequence from its blocks, end to end."""
    rows = [pages[own.long()].flatten(0, 1)[: b - a] for own, (a, b) in zip(blocks, pairwise(ends), strict=True)]
    return torch.cat(rows)
