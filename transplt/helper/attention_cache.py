"""flash-attn's attention against a cache of keys and values.

Source of arguments and results: flash_attn_interface.py of flash-attn 2.8.4 (Dao-AILab/flash-attention@0251105).
"""

from __future__ import annotations

from typing import Any

import torch

from transplt.helper.attention import sight_of
from transplt.helper.attention_core import Sight, attend, scored
from transplt.helper.rotary import turned_by_places

__all__ = ["flash_attn_with_kvcache"]


@torch.no_grad()  # type: ignore[untyped-decorator]
def flash_attn_with_kvcache(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    k: torch.Tensor | None = None,
    v: torch.Tensor | None = None,
    rotary_cos: torch.Tensor | None = None,
    rotary_sin: torch.Tensor | None = None,
    cache_seqlens: int | torch.Tensor | None = None,
    cache_batch_idx: torch.Tensor | None = None,
    cache_leftpad: torch.Tensor | None = None,
    block_table: torch.Tensor | None = None,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    rotary_interleaved: bool = True,
    alibi_slopes: torch.Tensor | None = None,
    num_splits: int = 0,
    return_softmax_lse: bool = False,
) -> Any:
    """flash_attn.flash_attn_with_kvcache: new keys and values go into the cache, then q attends to it. No gradients.

    q (batch, queries, heads, size); the caches (batch, length, heads, size), or (blocks, block size, heads, size) with
    `block_table` (batch, blocks); k and v (batch, new, heads, size). Lengths in a tensor stay on the card.
    """
    sight = sight_of(q, softmax_scale, causal, window_size, 0.0, softcap, alibi_slopes)
    batch, queries = q.shape[:2]
    room = k_cache.shape[1] * (block_table.shape[1] if block_table is not None else 1)
    used: int | torch.Tensor = room if cache_seqlens is None else cache_seqlens
    starts = used if isinstance(used, torch.Tensor) else torch.full((batch,), used, device=q.device)
    starts = starts.long()
    if k is not None and v is not None:
        places = starts[:, None] + torch.arange(k.shape[1], device=q.device)
        if rotary_cos is not None and rotary_sin is not None:
            if cache_leftpad is not None:
                raise NotImplementedError("flash_attn_with_kvcache: rotary_cos together with cache_leftpad")
            own = starts[:, None] + torch.arange(queries, device=q.device) * (sight.left >= 0 or sight.right >= 0)
            q = turned_by_places(q, rotary_cos, rotary_sin, own, rotary_interleaved)
            k = turned_by_places(k, rotary_cos, rotary_sin, places, rotary_interleaved)
        rows, columns = _slots(places, cache_batch_idx, block_table, k_cache.shape[1])
        k_cache[rows, columns], v_cache[rows, columns] = k.to(k_cache.dtype), v.to(v_cache.dtype)
        used, starts = used + k.shape[1], starts + k.shape[1]
    keys, values = (_of_batch(each, batch, cache_batch_idx, block_table) for each in (k_cache, v_cache))
    if not isinstance(used, torch.Tensor) and cache_leftpad is None and not return_softmax_lse:
        return attend(q, keys[:, :used], values[:, :used], sight)
    out, total = _of_lengths(q, keys, values, sight, starts, cache_leftpad)
    return (out, total) if return_softmax_lse else out


def _slots(
    places: torch.Tensor, entries: torch.Tensor | None, blocks: torch.Tensor | None, size: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Where in the cache the new keys of each sequence go, by their places (batch, new)."""
    if blocks is not None:
        return blocks.long().gather(1, places // size), places % size
    rows = torch.arange(len(places), device=places.device) if entries is None else entries.long()
    return rows[:, None].expand_as(places), places


def _of_batch(
    cache: torch.Tensor, batch: int, entries: torch.Tensor | None, blocks: torch.Tensor | None
) -> torch.Tensor:
    if blocks is not None:
        return cache[blocks.long()].flatten(1, 2)
    return cache[:batch] if entries is None else cache[entries.long()]


def _of_lengths(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, sight: Sight, ends: torch.Tensor, pads: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention to the keys of each sequence before its end, and behind its padding; sums of the exponentials too."""
    queries, keys = q.shape[1], k.shape[1]
    columns = torch.arange(keys, device=q.device)
    rows = torch.arange(queries, device=q.device) + (ends[:, None] - queries)  # (batch, queries): the place of each
    offset = columns - rows[:, :, None]
    visible = (columns < ends[:, None, None]).expand(len(q), queries, keys)
    if sight.left >= 0:
        visible = visible & (offset >= -sight.left)
    if sight.right >= 0:
        visible = visible & (offset <= sight.right)
    if pads is not None:
        visible = visible & (columns >= pads[:, None, None])
    if sight.slopes is not None:
        slopes = sight.slopes.reshape(-1, sight.slopes.shape[-1], 1, 1).float()
        sight = sight._replace(slopes=None, bias=-slopes * offset.abs()[:, None])
    out, total, _ = scored(q, k, v, sight, 0, visible[:, None])
    return out, total
