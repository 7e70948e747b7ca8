"""Fused attention and rotary embeddings."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

__all__ = [
    "npu_apply_rotary_pos_emb",
    "npu_fusion_attention",
    "npu_fusion_attention_v2",
    "npu_rotary_mul",
    "npu_scaled_masked_softmax",
]
_ALL = 2147483647
_DTYPES = (torch.float16, torch.bfloat16, torch.float32)


def _rotate(x: Any, mode: str) -> Any:
    if mode == "half":
        first, second = x.chunk(2, -1)
        return torch.cat((-second, first), -1)
    if mode == "interleave":
        pairs = x.unflatten(-1, (-1, 2))
        return torch.stack((-pairs[..., 1], pairs[..., 0]), -1).flatten(-2)
    raise ValueError(f"[emulated npu] rotary_mode is 'half' or 'interleave', not {mode!r}")


def npu_rotary_mul(input: Any, r1: Any, r2: Any, rotary_mode: str = "half", rotate: Any = None) -> Any:
    """x * r1 + rotate(x) * r2, x in 4-D or 3-D, r1 and r2 (cosine, sine) of the same rank and of the full head size.

    The result has the dtype of x, to which r1 and r2 are cast.
    """
    if input.dim() not in (3, 4) or r1.dim() != input.dim() or r2.dim() != input.dim():
        raise RuntimeError(
            "[emulated npu] npu_rotary_mul takes input, r1 and r2 of three or four dimensions each, not "
            f"{input.dim()}, {r1.dim()} and {r2.dim()}"
        )
    if input.shape[-1] % 2 or r1.shape[-1] != input.shape[-1] or r2.shape[-1] != input.shape[-1]:
        raise RuntimeError(
            "[emulated npu] npu_rotary_mul takes input, r1 and r2 of one even last size, not "
            f"{input.shape[-1]}, {r1.shape[-1]} and {r2.shape[-1]}"
        )
    r1, r2 = r1.to(input.dtype), r2.to(input.dtype)
    if rotate is not None:
        return input * r1 + (input @ rotate) * r2
    return input * r1 + _rotate(input, rotary_mode) * r2


def npu_apply_rotary_pos_emb(
    query: Any, key: Any, cos: Any, sin: Any, layout: str = "BSND", rotary_mode: str = "half"
) -> tuple[Any, Any]:
    """npu_rotary_mul of query and key, in place."""
    query.copy_(query * cos + _rotate(query, rotary_mode) * sin)
    key.copy_(key * cos + _rotate(key, rotary_mode) * sin)
    return query, key


def npu_scaled_masked_softmax(x: Any, mask: Any, scale: float = 1.0, fixed_triu_mask: bool = False) -> Any:
    """softmax(x * scale) over the last dimension, True in `mask` left out (filled with -10000)."""
    if fixed_triu_mask:
        raise RuntimeError(
            "[emulated npu] npu_scaled_masked_softmax: fixed_triu_mask=True is not supported by torch_npu"
        )
    return torch.softmax((x.float() * scale).masked_fill(mask, -10000.0), -1).to(x.dtype)


_TO_BNSD: dict[str, Any] = {
    "BSH": lambda t, heads: t.unflatten(-1, (heads, -1)).transpose(1, 2),
    "SBH": lambda t, heads: t.unflatten(-1, (heads, -1)).permute(1, 2, 0, 3),
    "BSND": lambda t, heads: t.transpose(1, 2),
    "BNSD": lambda t, heads: t,
}
_FROM_BNSD: dict[str, Any] = {
    "BSH": lambda t: t.transpose(1, 2).flatten(-2),
    "SBH": lambda t: t.permute(2, 0, 1, 3).flatten(-2),
    "BSND": lambda t: t.transpose(1, 2),
    "BNSD": lambda t: t,
}


def _dropped(shape: tuple[int, int], device: Any, mask: Any, mode: int, before: int, after: int) -> Any:
    """The positions (query, key) that are left out; True or 1 in a mask means left out. None: no position."""
    rows, columns = shape
    if mode in (0, 1):
        dropped = None if mask is None else mask.bool()
        if mode == 1 or mask is None or (before >= columns and after >= columns):
            return dropped
    elif mask is None:
        return None  # "when atten_mask is None, sparse_mode, pre_tockens and next_tockens take no effect"
    elif tuple(mask.shape) != (2048, 2048):
        raise RuntimeError(
            f"[emulated npu] npu_fusion_attention: sparse_mode {mode} takes the 2048x2048 upper-triangular atten_mask, "
            f"not one of {tuple(mask.shape)}"
        )
    else:
        dropped = None
    offset = torch.arange(columns, device=device)[None, :] - torch.arange(rows, device=device)[:, None]
    if mode in (3, 4):
        offset = offset - (columns - rows)  # aligned at the bottom right
    band = offset > 0 if mode in (2, 3) else (offset > after) | (offset < -before)
    return band if dropped is None else dropped | band


def _attend(
    q: Any, k: Any, v: Any, pse: Any, dropped: Any, scale: float, keep: float, pse_type: int
) -> tuple[Any, Any, Any]:
    """softmax(mask(scale * (q k^T + pse))) v in BNSD, with the row maximum and sum of the softmax."""
    if k.shape[1] != q.shape[1]:
        k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], 1) for t in (k, v))
    scores = q.float() @ k.float().transpose(-1, -2)
    if pse is not None and pse_type == 1:
        scores = scores + pse.float()
    scores = scores * scale
    if pse is not None and pse_type == 0:
        scores = scores + pse.float()
    if dropped is not None:
        scores = scores.masked_fill(dropped, torch.finfo(torch.float32).min)
    top = scores.amax(-1, keepdim=True)
    exponentials = torch.exp(scores - top)
    total = exponentials.sum(-1, keepdim=True)
    weights = exponentials / total
    if keep < 1:
        weights = F.dropout(weights, 1 - keep)
    return (weights @ v.float()).to(q.dtype), top.expand(*top.shape[:-1], 8), total.expand(*total.shape[:-1], 8)


def _varlen(
    q: Any,
    k: Any,
    v: Any,
    q_ends: Any,
    k_ends: Any,
    mask: Any,
    scale: float,
    keep: float,
    mode: int,
    before: int,
    after: int,
    pse: Any,
) -> Any:
    """TND: sequences laid end to end; the lists hold the running totals of their lengths, without the leading 0."""
    if q_ends is None or k_ends is None or len(q_ends) != len(k_ends):
        raise RuntimeError(
            "[emulated npu] npu_fusion_attention: TND needs actual_seq_qlen and actual_seq_kvlen of the same length"
        )
    if pse is not None:
        raise NotImplementedError("[emulated npu] npu_fusion_attention: pse with TND is not emulated")
    outputs, tops, totals = [], [], []
    q_start = k_start = 0
    for q_end, k_end in zip(q_ends, k_ends, strict=True):
        part = [
            t[a:b].transpose(0, 1)[None] for t, a, b in ((q, q_start, q_end), (k, k_start, k_end), (v, k_start, k_end))
        ]
        shape = (q_end - q_start, k_end - k_start)
        small = mask[: shape[0], : shape[1]] if mask is not None and mode in (0, 1) else mask
        dropped = _dropped(shape, q.device, small, mode, before, after)
        out, top, total = _attend(part[0], part[1], part[2], None, dropped, scale, keep, 1)
        outputs.append(out[0].transpose(0, 1))
        tops.append(top[0].transpose(0, 1))
        totals.append(total[0].transpose(0, 1))
        q_start, k_start = q_end, k_end
    return torch.cat(outputs), torch.cat(tops), torch.cat(totals)


def npu_fusion_attention(
    query: Any,
    key: Any,
    value: Any,
    head_num: int,
    input_layout: str,
    pse: Any = None,
    padding_mask: Any = None,
    atten_mask: Any = None,
    scale: float = 1.0,
    keep_prob: float = 1.0,
    pre_tockens: int = _ALL,
    next_tockens: int = _ALL,
    inner_precise: int = 0,
    prefix: Any = None,
    actual_seq_qlen: Any = None,
    actual_seq_kvlen: Any = None,
    sparse_mode: int = 0,
    gen_mask_parallel: bool = True,
    sync: bool = False,
    softmax_layout: str = "",
    sink: Any = None,
    _pse_type: int = 1,
) -> tuple[Any, ...]:
    """dropout(softmax(mask(scale * (q k^T + pse)))) v. Layouts BSH, SBH, BSND, BNSD and TND; sparse modes 0 to 4.

    Returns (output, softmax maximum, softmax sum, reserved, seed, offset, length); maximum and sum have a last
    dimension of 8.
    """
    if padding_mask is not None:
        raise RuntimeError("[emulated npu] npu_fusion_attention: padding_mask is not supported by torch_npu")
    if prefix is not None or sink is not None or sparse_mode not in (0, 1, 2, 3, 4):
        raise NotImplementedError(
            f"[emulated npu] npu_fusion_attention: prefix, sink and sparse_mode {sparse_mode} are not emulated"
        )
    if atten_mask is not None and atten_mask.dtype not in (torch.bool, torch.uint8):
        raise RuntimeError(f"[emulated npu] npu_fusion_attention: atten_mask is bool or uint8, not {atten_mask.dtype}")
    if not query.dtype == key.dtype == value.dtype or query.dtype not in _DTYPES:
        raise RuntimeError(
            "[emulated npu] npu_fusion_attention takes query, key and value of one dtype, float16, bfloat16 or "
            f"float32, not {query.dtype}, {key.dtype} and {value.dtype}"
        )
    if not 0 < keep_prob <= 1:
        raise RuntimeError(f"[emulated npu] npu_fusion_attention: keep_prob is in (0, 1], not {keep_prob}")
    empty = torch.empty(0, device=query.device)
    if input_layout == "TND":
        output, top, total = _varlen(
            query,
            key,
            value,
            actual_seq_qlen,
            actual_seq_kvlen,
            atten_mask,
            scale,
            keep_prob,
            sparse_mode,
            pre_tockens,
            next_tockens,
            pse,
        )
        return output, top, total, empty, 0, 0, 0
    if input_layout not in _TO_BNSD:
        raise RuntimeError(
            f"[emulated npu] npu_fusion_attention: input_layout {input_layout!r} is none of BSH, SBH, BSND, BNSD, TND"
        )
    to_bnsd = _TO_BNSD[input_layout]
    q = to_bnsd(query, head_num)
    kv_heads = head_num if input_layout not in ("BSH", "SBH") else key.shape[-1] // q.shape[-1]
    k, v = to_bnsd(key, kv_heads), to_bnsd(value, kv_heads)
    if q.shape[1] != head_num:
        raise RuntimeError(
            f"[emulated npu] npu_fusion_attention: head_num is {head_num}, the query has {q.shape[1]} heads"
        )
    if q.shape[1] % k.shape[1]:
        raise RuntimeError(
            f"[emulated npu] npu_fusion_attention: {q.shape[1]} heads of the query are no multiple of {k.shape[1]}"
        )
    if atten_mask is not None and sparse_mode in (0, 1):
        batch, heads, rows, columns = q.shape[0], q.shape[1], q.shape[2], k.shape[2]
        sizes = [(batch, heads, rows, columns), (batch, 1, rows, columns), (1, 1, rows, columns), (rows, columns)]
        if tuple(atten_mask.shape) not in sizes:
            raise RuntimeError(
                "[emulated npu] npu_fusion_attention: atten_mask is BNSS, B1SS, 11SS or SS, not "
                f"{tuple(atten_mask.shape)} with scores of {sizes[0]}"
            )
    dropped = _dropped((q.shape[-2], k.shape[-2]), q.device, atten_mask, sparse_mode, pre_tockens, next_tockens)
    output, top, total = _attend(q, k, v, pse, dropped, scale, keep_prob, _pse_type)
    return _FROM_BNSD[input_layout](output), top, total, empty, 0, 0, 0


def npu_fusion_attention_v2(
    query: Any,
    key: Any,
    value: Any,
    head_num: int,
    input_layout: str,
    *,
    pse: Any = None,
    padding_mask: Any = None,
    atten_mask: Any = None,
    scale: float = 1.0,
    keep_prob: float = 1.0,
    pre_tokens: int = _ALL,
    next_tokens: int = _ALL,
    inner_precise: int = 0,
    prefix: Any = None,
    actual_seq_qlen: Any = None,
    actual_seq_kvlen: Any = None,
    sparse_mode: int = 0,
    pse_type: int = 1,
    **kwargs: Any,
) -> tuple[Any, ...]:
    """npu_fusion_attention with `pse_type`: 0 adds pse after the scaling, 1 before it."""
    if pse_type not in (0, 1):
        raise NotImplementedError(f"[emulated npu] npu_fusion_attention_v2: pse_type {pse_type} is not emulated")
    return npu_fusion_attention(
        query,
        key,
        value,
        head_num,
        input_layout,
        pse,
        padding_mask,
        atten_mask,
        scale,
        keep_prob,
        pre_tokens,
        next_tokens,
        inner_precise,
        prefix,
        actual_seq_qlen,
        actual_seq_kvlen,
        sparse_mode,
        _pse_type=pse_type,
    )
