"""Mixture of experts: grouped products, routing, permuting."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch

__all__ = ["npu_grouped_matmul", "npu_moe_gating_top_k_softmax", "npu_moe_token_permute", "npu_moe_token_unpermute"]


def _ends(group_list: Any, kind: int) -> list[int]:
    """Running totals of the group sizes; `kind` 0: they are given, 1: the sizes are."""
    values = [int(v) for v in (group_list.tolist() if isinstance(group_list, torch.Tensor) else group_list)]
    if kind == 1:
        total, ends = 0, []
        for size in values:
            total += size
            ends.append(total)
        return ends
    if kind != 0:
        raise NotImplementedError("[emulated npu] npu_grouped_matmul: group_list_type 2 is not emulated")
    return values


def npu_grouped_matmul(
    x: Any,
    weight: Any,
    *,
    bias: Any = None,
    scale: Any = None,
    offset: Any = None,
    antiquant_scale: Any = None,
    antiquant_offset: Any = None,
    per_token_scale: Any = None,
    group_list: Any = None,
    activation_input: Any = None,
    activation_quant_scale: Any = None,
    activation_quant_offset: Any = None,
    split_item: int = 0,
    group_type: Any = None,
    group_list_type: int = 0,
    act_type: int = 0,
    output_dtype: Any = None,
    **kwargs: Any,
) -> list[Any]:
    """One product per group: x[i] @ weight[i] (+ bias[i]); a list. Rows of a single x are split by `group_list`."""
    quantised = (scale, offset, antiquant_scale, antiquant_offset, per_token_scale, activation_quant_scale)
    if any(v is not None for v in quantised) or act_type:
        raise NotImplementedError("[emulated npu] npu_grouped_matmul: quantisation and activations are not emulated")
    if group_type not in (None, -1, 0):
        raise NotImplementedError(f"[emulated npu] npu_grouped_matmul: group_type {group_type} is not emulated")
    weights = list(weight[0].unbind(0)) if len(weight) == 1 and weight[0].dim() == 3 else list(weight)
    parts = list(x)
    if len(parts) == 1 and len(weights) > 1:
        if group_list is None:
            raise RuntimeError("[emulated npu] npu_grouped_matmul: a single x needs a group_list")
        starts = [0, *_ends(group_list, group_list_type)]
        parts = [parts[0][a:b] for a, b in pairwise(starts)]
    biases: list[Any] = [None] * len(weights)
    if bias:
        biases = list(bias[0].unbind(0)) if len(bias) == 1 and bias[0].dim() == 2 else list(bias)
    outputs = [p @ w if b is None else p @ w + b for p, w, b in zip(parts, weights, biases, strict=True)]
    outputs = [o if output_dtype is None else o.to(output_dtype) for o in outputs]
    return [torch.cat(outputs)] if split_item in (2, 3) else outputs


def npu_moe_token_permute(
    tokens: Any, indices: Any, num_out_tokens: Any = None, padded_mode: bool = False
) -> tuple[Any, Any]:
    """(tokens sorted by expert, the place of each (token, choice) in them). `indices`: (tokens,) or (tokens,
    choices)."""
    if padded_mode:
        raise RuntimeError("[emulated npu] npu_moe_token_permute: padded_mode=True is not supported by torch_npu")
    choices = 1 if indices.dim() == 1 else indices.shape[1]
    order = torch.argsort(indices.reshape(-1), stable=True)
    places = torch.argsort(order, stable=True).to(torch.int32)
    kept = order if not num_out_tokens else order[:num_out_tokens]
    return tokens[torch.div(kept, choices, rounding_mode="floor")], places


def npu_moe_token_unpermute(
    permuted_tokens: Any, sorted_indices: Any, probs: Any = None, padded_mode: bool = False, restore_shape: Any = None
) -> Any:
    """The inverse of npu_moe_token_permute: each token's choices summed, weighted by `probs` (tokens, choices)."""
    if padded_mode:
        raise RuntimeError("[emulated npu] npu_moe_token_unpermute: padded_mode=True is not supported by torch_npu")
    choices = 1 if probs is None else probs.shape[1]
    rows = permuted_tokens[sorted_indices.long().clamp(max=len(permuted_tokens) - 1)]
    dropped = (sorted_indices >= len(permuted_tokens)).unsqueeze(-1)
    rows = rows.masked_fill(dropped, 0).unflatten(0, (-1, choices))
    return (rows if probs is None else rows * probs.unsqueeze(-1)).sum(1).to(permuted_tokens.dtype)


def npu_moe_gating_top_k_softmax(x: Any, finished: Any = None, k: int = 1) -> tuple[Any, Any, Any]:
    """(the k largest softmax values of each row, their experts, row numbers laid out expert-major)."""
    values, experts = torch.softmax(x.float(), -1).topk(k, -1)
    if finished is not None:
        experts = experts.masked_fill(finished.unsqueeze(-1), x.shape[-1])
    rows = x.shape[:-1].numel()
    places = torch.arange(rows * k, dtype=torch.int32, device=x.device).reshape(k, rows).t().reshape(*x.shape[:-1], k)
    return values.to(x.dtype), experts.to(torch.int32), places
