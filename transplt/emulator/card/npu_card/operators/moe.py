"""Routing of a mixture of experts: choosing experts, bringing tokens into the order of experts and back, with the
backward. Formulas: op-plugin's pages and tests of the torch_npu functions of these names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional as F

from . import operator

_ATEN = torch.ops.aten


# ---- choosing experts ----
def _finished(experts: Any, finished: Any, count: int) -> Any:
    """The expert beyond the last for rows that are done."""
    return experts if finished is None else experts.masked_fill(finished.unsqueeze(-1), count)


@operator("MoeGatingTopKSoftmax")
def _gating_softmax(x: Any, finished: Any, k: int) -> tuple[Any, Any, Any]:
    """The k greatest of each softmax, their experts, and numbers of rows that count choice after choice."""
    values, experts = torch.softmax(x.float(), -1).topk(k, -1)
    count = x.shape[:-1].numel()
    rows = torch.arange(count * k, device="cpu").reshape(k, count).t()
    return values, _finished(experts, finished, x.shape[-1]), rows.reshape(values.shape)


@operator("MoeGatingTopKSoftmaxV2")
def _gating_softmax_v2(x: Any, finished: Any, k: int, renorm: int, whole: bool) -> tuple[Any, Any, Any]:
    """With `renorm` the softmax is over the k chosen alone."""
    softmax = torch.softmax(x.float(), -1)
    values, experts = (x.float() if renorm else softmax).topk(k, -1)
    values = torch.softmax(values, -1) if renorm else values
    return values, _finished(experts, finished, x.shape[-1]), softmax if whole and not renorm else None


@operator("MoeGatingTopK")
def _gating(
    x: Any, bias: Any, k: int, k_group: int, groups: int, select: int, renorm: int, norm: int, whole: bool,
    factor: float, eps: float,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Scores by softmax or sigmoid (`norm` 1); the k best of the best groups by scores with a bias, whose own score is
    the greatest or the sum of the two greatest (`select` 1); with sigmoid the chosen sum to one."""
    scores = torch.sigmoid(x.float()) if norm else torch.softmax(x.float(), -1)
    chosen = scores if bias is None else scores + bias.float()
    if groups > 1:
        grouped = chosen.unflatten(-1, (groups, -1))
        best = grouped.topk(2, -1)[0].sum(-1) if select else grouped.amax(-1)
        kept = torch.sort(best, descending=True, stable=True)[1][:, :k_group]
        outside = torch.ones_like(best, dtype=torch.bool).scatter(1, kept, False)
        chosen = grouped.masked_fill(outside.unsqueeze(-1), -torch.inf).flatten(-2)
    experts = torch.sort(chosen, descending=True, stable=True)[1][:, :k]
    values = scores.gather(1, experts)
    if norm or renorm:
        values = values / (values.sum(-1, keepdim=True) + eps)
    return values * factor, experts, scores if whole else None


@operator("MoeGatingTopKBackward")
def _gating_backward(
    scores: Any, gradient: Any, experts: Any, renorm: int, norm: int, factor: float, eps: float
) -> Any:
    scores, gradient, experts = scores.float(), gradient.float() * factor, experts.long()
    if norm or renorm:
        chosen = scores.gather(1, experts)
        total = chosen.sum(-1, keepdim=True) + eps
        gradient = (gradient - (gradient * chosen).sum(-1, keepdim=True) / total) / total
    spread = torch.zeros_like(scores).scatter(1, experts, gradient)
    if norm:
        return spread * scores * (1 - scores)
    return _ATEN._softmax_backward_data(spread, scores, -1, torch.float32)


# ---- tokens in the order of their experts ----
@operator("MoeTokenPermute")
def _permute(tokens: Any, experts: Any, count: int, padded: bool) -> tuple[Any, Any]:
    """Tokens sorted by expert, and the place of each choice of each token among them."""
    choices = 1 if experts.dim() == 1 else experts.shape[1]
    order = torch.argsort(experts.reshape(-1), stable=True)
    return tokens[order[:count] // choices], torch.argsort(order, stable=True)


def _at(rows: Any, places: Any) -> Any:
    """Rows at their places, in float32; zeros where a place lies beyond them: the token was dropped."""
    inside = places < len(rows)
    return rows.float()[places.long().clamp(max=len(rows) - 1)].masked_fill(~inside.unsqueeze(-1), 0)


def _into(count: int, places: Any, rows: Any) -> Any:
    """`count` rows, of which those at `places` are `rows`; what lies beyond them is dropped."""
    inside = places < count
    return torch.zeros(count, rows.shape[-1], device="cpu").index_copy(0, places[inside].long(), rows[inside])


@operator("MoeTokenPermuteGrad")
def _permute_grad(gradient: Any, places: Any, choices: int, padded: bool) -> Any:
    return _at(gradient, places).unflatten(0, (-1, choices)).sum(1)


@operator("MoeTokenUnpermute")
def _unpermute(permuted: Any, places: Any, probs: Any, padded: bool, shape: Any) -> Any:
    """The choices of each token summed, by their probabilities."""
    rows = _at(permuted, places)
    if probs is None:
        return rows
    return (rows.unflatten(0, (-1, probs.shape[1])) * probs.float().unsqueeze(-1)).sum(1)


@operator("MoeTokenUnpermuteGrad")
def _unpermute_grad(
    permuted: Any, gradient: Any, places: Any, probs: Any, padded: bool, shape: Any, outputs: Sequence[Any]
) -> tuple[Any, Any]:
    choices = 1 if probs is None else probs.shape[1]
    spread = gradient.float().repeat_interleave(choices, 0)
    of_probs = None
    if probs is not None:
        of_probs = (_at(permuted, places) * spread).sum(-1).reshape(probs.shape)
        spread = spread * probs.float().reshape(-1, 1)
    return _into(len(outputs[0]), places, spread), of_probs


# ---- the same by a map of (token, expert) ----
@operator("MoeTokenPermuteWithRoutingMap")
def _permute_by_map(tokens: Any, routing: Any, probs: Any, count: int, padded: bool) -> tuple[Any, Any, Any]:
    """Tokens expert after expert. Padded: for each expert so many of its first tokens as it holds, and their numbers;
    else all, and the place of each choice of each token."""
    chosen = routing.bool().t()
    if padded:
        order = torch.sort(chosen.to(torch.int8), descending=True, stable=True)[1][:, : count // len(chosen)]
        of_choices = None if probs is None else probs.t().gather(1, order).reshape(-1)
        return tokens[order.reshape(-1)], of_choices, order.reshape(-1)
    _, numbers = chosen.nonzero(as_tuple=True)
    of_choices = None if probs is None else probs.t()[chosen]
    return tokens[numbers], of_choices, torch.sort(numbers, stable=True)[1]


@operator("MoeTokenPermuteWithRoutingMapGrad")
def _permute_by_map_grad(
    gradient: Any, of_choices: Any, places: Any, routing: Any, experts: int, tokens: int, padded: bool
) -> tuple[Any, Any]:
    if padded:
        expert, numbers = torch.arange(experts, device="cpu").repeat_interleave(len(places) // experts), places.long()
    else:
        expert, numbers = routing.bool().t().nonzero(as_tuple=True)
    of_tokens = torch.zeros(tokens, gradient.shape[1], device="cpu").index_add(0, numbers, gradient.float())
    if of_choices is None:
        return of_tokens, None
    of_probs = torch.zeros(tokens, experts, device="cpu")
    return of_tokens, of_probs.index_put((numbers, expert), of_choices.float(), accumulate=True)


def _weights_by_map(probs: Any, routing: Any, places: Any, padded: bool) -> Any:
    """The probability of each row: padded in the order of experts, else token after token."""
    if not padded:
        return probs[routing.bool()]
    return probs.t().gather(1, places.long().reshape(probs.shape[1], -1)).reshape(-1)


@operator("MoeTokenUnpermuteWithRoutingMap")
def _unpermute_by_map(
    permuted: Any, places: Any, routing: Any, probs: Any, padded: bool, shape: Sequence[int]
) -> tuple[Any, Any, Any, Any]:
    weights = None if probs is None else _weights_by_map(probs, routing, places, padded)
    if padded:
        rows = permuted.float() if weights is None else permuted.float() * weights.float().unsqueeze(-1)
        numbers, index = torch.sort(places, stable=True)
        tokens = torch.zeros(*shape, device="cpu").index_add(0, places.long(), rows)
        return tokens, index, numbers, weights
    rows = permuted.float()[places.long()]
    if weights is not None:
        rows = rows * weights.float().unsqueeze(-1)
    return rows.unflatten(0, (shape[0], -1)).sum(1), places, places, weights


@operator("MoeTokenUnpermuteWithRoutingMapGrad")
def _unpermute_by_map_grad(
    gradient: Any, index: Any, numbers: Any, routing: Any, permuted: Any, probs: Any, padded: bool, shape: Sequence[int]
) -> tuple[Any, Any]:
    count, index = len(index), index.long()
    if not padded:
        numbers = torch.arange(count, device="cpu") // (count // shape[0])
    spread = gradient.float()[numbers.long()]
    if probs is None:
        return torch.zeros_like(spread).index_copy(0, index, spread), None
    expert = index // (count // probs.shape[1]) if padded else routing.bool().nonzero(as_tuple=True)[1]
    at = (numbers.long(), expert)
    of_rows = (permuted.float()[index] * spread).sum(-1)
    of_probs = torch.zeros(probs.shape, device="cpu").index_put(at, of_rows, accumulate=True)
    return torch.zeros_like(spread).index_copy(0, index, spread * probs.float()[at].unsqueeze(-1)), of_probs


# ---- routing for inference ----
@operator("MoeInitRouting")
def _init_routing(x: Any, rows: Any, experts: Any, active: int) -> tuple[Any, Any, Any]:
    """Rows sorted by expert (so many as are active), where each lies, and the sorted experts."""
    ordered, order = torch.sort(experts.reshape(-1), stable=True)
    source = rows.reshape(-1)[order].long()
    count = min(active, len(x)) * experts.shape[1]
    return x[source[:count] % len(x)], torch.argsort(source), ordered


@operator("MoeInitRoutingV3")
def _init_routing_v3(
    x: Any, experts: Any, scale: Any, offset: Any, active: int, capacity: int, count: int, drop_pad: int, kind: int,
    wants_count: bool, quant: int, limits: Sequence[int], row_type: int, outputs: Sequence[Any],
) -> tuple[Any, Any, Any, Any]:  # fmt: skip
    """Rows sorted by expert within a range of experts; with `drop_pad` each expert gets `capacity` places."""
    if quant != -1:
        raise NotImplementedError("npu_moe_init_routing_v2 with quantisation is not emulated")
    first, end = limits or (0, count)
    flat, k = experts.reshape(-1).long(), experts.shape[1]
    inside = (flat >= first) & (flat < end)
    order = torch.sort(flat.masked_fill(~inside, torch.iinfo(torch.int32).max), stable=True)[1]
    valid = int(inside.sum())
    order_in, ordered = order[:valid], flat[order[:valid]]
    counts = torch.bincount(ordered - first, minlength=end - first)
    places = torch.arange(valid, device="cpu")
    if drop_pad:
        nth = places - (counts.cumsum(0) - counts)[ordered - first]
        fits = nth < capacity
        order_in, places = order_in[fits], ordered[fits] * capacity + nth[fits]
    rows = torch.full((len(flat),), -1, device="cpu").index_copy(0, order_in, places)
    size = outputs[0].reshape(-1, x.shape[1]).shape[0]
    kept = places < size
    order_in, places = order_in[kept], places[kept]
    expanded = torch.zeros(size, x.shape[1], dtype=x.dtype, device="cpu").index_copy(0, places, x[order_in // k])
    expanded_scale = None
    if scale is not None:
        expanded_scale = torch.zeros(size, device="cpu").index_copy(0, places, scale.float()[order_in // k])
    told = _counted(counts, first, kind) if wants_count else None
    return expanded, order if row_type == 1 else rows, told, expanded_scale


def _counted(counts: Any, first: int, kind: int) -> Any:
    """Tokens of each expert: running totals (0), counts (1), or pairs of an expert that has any and its count (2)."""
    if kind == 2:
        used = counts.nonzero()[:, 0]
        pairs = torch.stack((used + first, counts[used]), 1)
        return F.pad(pairs, (0, 0, 0, len(counts) - len(pairs)))
    return counts if kind == 1 else counts.cumsum(0)


@operator("MoeFinalizeRoutingV4")
def _finalize(
    rows: Any, places: Any, skip1: Any, skip2: Any, bias: Any, scales: Any, experts: Any, *others: Any
) -> Any:
    """The rows of each token, with a bias of their expert and by their scales, summed; a place of -1 is a dropped row.
    Modes 2 and 3 count the choices of a token before the next token. What torch_npu leaves null is not looked at."""
    mode, k = others[4], others[8]
    k = k if scales is None else scales.shape[1]
    rows = rows.float().reshape(-1, rows.shape[-1])
    places = places.long().reshape(-1, k) if mode in (2, 3) else places.long().reshape(k, -1).t()
    found = rows[places.clamp(0, len(rows) - 1)].masked_fill(
        ((places < 0) | (places >= len(rows))).unsqueeze(-1), 0
    )
    if bias is not None:
        found = found + bias.float()[experts.long()]
    if scales is not None:
        found = found * scales.float().unsqueeze(-1)
    total = found.sum(1)
    for skip in (skip1, skip2):
        total = total if skip is None else total + skip.float()
    return total


@operator("MoeFinalizeRoutingV2")
def _finalize_v2(*given: Any) -> Any:
    *tensors, mode = given
    return _finalize(*tensors, *(None,) * 4, mode, *(None,) * 3, 1)


@operator("MoeComputeExpertTokens")
def _expert_tokens(experts: Any, count: int) -> Any:
    return torch.bincount(experts.reshape(-1).long(), minlength=count)[:count].cumsum(0)


@operator("MoeReRouting")
def _re_route(tokens: Any, counts: Any, scales: Any, count_type: int, index_type: int) -> tuple[Any, Any, Any, Any]:
    """Tokens that came rank after rank, in each expert after expert, brought into the order of experts."""
    ranks, count = counts.shape
    experts = torch.arange(count, device="cpu").repeat(ranks).repeat_interleave(counts.reshape(-1).long())
    order = torch.argsort(experts, stable=True)
    totals = counts.sum(0)
    return (
        tokens[order], None if scales is None else scales[order],
        torch.argsort(order) if index_type == 1 else order, totals if count_type == 1 else totals.cumsum(0),
    )  # fmt: skip
