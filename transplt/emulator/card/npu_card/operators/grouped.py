"""Products of matrices in groups, as the experts of a mixture need them; after op-plugin's pages on npu_grouped_matmul,
npu_grouped_matmul_add and npu_ffn. In float32; eight-bit types are not emulated."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch.nn import functional as F

from . import operator

#: What is split into groups: nothing (pairs of lists), the rows of x, or the dimension that is summed.
_PAIRS, _ROWS, _SUMMED = -1, 0, 2
_ACTIVATIONS = {
    "relu": F.relu, "gelu": F.gelu, "silu": F.silu, "fastgelu": lambda x: x * torch.sigmoid(1.702 * x),
}  # fmt: skip
_GATES = {"geglu": F.gelu, "swiglu": F.silu, "reglu": F.relu}


def _groups(values: Any, kind: int) -> list[tuple[int, slice]]:
    """Which weight multiplies which rows: `values` are running totals (kind 0), sizes (1), or pairs of a weight and a
    size (2)."""
    if isinstance(values, torch.Tensor):
        values = values.tolist()
    match kind:
        case 0:
            numbers, ends = list(range(len(values))), list(values)
        case 1:
            numbers, ends = list(range(len(values))), list(accumulate(values))
        case _:
            numbers, ends = [each[0] for each in values], list(accumulate(each[1] for each in values))
    return [(number, slice(a, b)) for number, (a, b) in zip(numbers, pairwise((0, *ends)), strict=True)]


def _each(tensors: Sequence[Any], whole: int) -> list[Any]:
    """A list of tensors; one of `whole` dimensions holds them all."""
    return list(tensors[0].unbind(0)) if len(tensors) == 1 and tensors[0].dim() == whole else list(tensors)


def _grouped_matmul(x: Any, weight: Any, bias: Any, groups: Any, split: int, kind: int, group_type: int) -> list[Any]:
    """One product for each group: a tensor each, or all rows in one (`split` 2 and 3)."""
    if group_type == _SUMMED:
        parts = _groups(groups, kind)
        products = [x[0].float()[:, rows] @ weight[0].float()[rows] for _, rows in parts]
        return [torch.stack(products)] if split in (2, 3) else products
    weights, biases = _each(weight, 3), _each(bias, 2) if bias else None
    if len(x) == 1 and groups is not None and len(groups):
        pairs = [(x[0][rows], number) for number, rows in _groups(groups, kind)]
    else:
        pairs = [(part, number) for number, part in enumerate(x)]
    products = []
    for part, number in pairs:
        product = part.float() @ weights[number].float()
        products.append(product if biases is None else product + biases[number].float())
    if split not in (2, 3):
        return products
    rows = torch.cat(products)
    return [F.pad(rows, (0, 0, 0, len(x[0]) - len(rows)))] if len(x) == 1 else [rows]


_QUANTISED = "scale:T offset:T antiquant_scale:T antiquant_offset:T"
_LATER = f"x:T weight:T bias:T {_QUANTISED} per_token_scale:T groups:t input:T input_scale:T input_offset:T split:i"


@operator("GroupedMatmulV4", arguments=f"{_LATER} group_type:i kind:i act:i y:T> act_out:T> scale_out:T>")
def _grouped_matmul_v4(
    x: Any, weight: Any, bias: Any, scale: Any, offset: Any, antiquant_scale: Any, antiquant_offset: Any,
    per_token_scale: Any, groups: Any, given: Any, given_scale: Any, given_offset: Any, split: int, group_type: int,
    kind: int, act: int, tuning: Any = None,
) -> tuple[Any, None, None]:  # fmt: skip
    if any((scale, offset, antiquant_scale, antiquant_offset, per_token_scale, given, act)):
        raise NotImplementedError("a grouped product in eight bits or with an activation is not emulated")
    return _grouped_matmul(x, weight, bias, groups, split, kind, group_type), None, None


operator(
    "GroupedMatmulV5", arguments=f"{_LATER} group_type:i kind:i act:i tuning:a y:T> act_out:T> scale_out:T>"
)(_grouped_matmul_v4)


@operator("GroupedMatmul", arguments=f"x:T weight:T bias:T {_QUANTISED} groups:a split:i y:T>")
def _grouped_matmul_v1(
    x: Any, weight: Any, bias: Any, scale: Any, offset: Any, antiquant_scale: Any, antiquant_offset: Any, groups: Any,
    split: int,
) -> list[Any]:  # fmt: skip
    if any((scale, offset, antiquant_scale, antiquant_offset)):
        raise NotImplementedError("a grouped product in eight bits is not emulated")
    return _grouped_matmul(x, weight, bias, groups, split, 0, _ROWS if groups else _PAIRS)


@operator(
    "GroupedMatmulAdd",
    arguments="x:t weight:t groups:t self:t& transpose_x:b transpose_weight:b group_type:i",
)
def _grouped_matmul_add(
    x: Any, weight: Any, groups: Any, target: Any, transpose_x: bool, transpose_weight: bool, group_type: int,
    kind: int = 0,
) -> None:  # fmt: skip
    """For each group the product over its rows, added to its part of `target`: the gradient of a weight."""
    left = (x.t() if transpose_x else x).float()
    right = (weight.t() if transpose_weight else weight).float()
    products = torch.stack([left[:, rows] @ right[rows] for _, rows in _groups(groups, kind)])
    target.copy_(target.float() + products.reshape(target.shape))


operator(
    "GroupedMatmulAddV2",
    arguments="x:t weight:t groups:t self:t& transpose_x:b transpose_weight:b group_type:i kind:i",
)(_grouped_matmul_add)


@operator(
    "FFNV2",
    arguments="x:t weight1:t weight2:t tokens:a bias1:t bias2:t scale:t offset:t deq_scale1:t deq_scale2:t "
    "antiquant_scale1:t antiquant_scale2:t antiquant_offset1:t antiquant_offset2:t activation:z precise:i indices:b "
    "y:t>",
)
def _ffn(
    x: Any, weight1: Any, weight2: Any, tokens: Sequence[int], bias1: Any, bias2: Any, *others: Any
) -> Any:
    """activation(x w1 + b1) w2 + b2, for the tokens of each expert where there are any."""
    *quantised, activation, _, indices = others
    if any(each is not None for each in quantised):
        raise NotImplementedError("a feed-forward net in eight bits is not emulated")

    def layer(rows: Any, number: Any) -> Any:
        one, two, three, four = (
            None if each is None else (each if number is None else each[number]).float()
            for each in (weight1, bias1, weight2, bias2)
        )
        inner = rows @ one if two is None else rows @ one + two
        if activation in _GATES:
            left, right = inner.chunk(2, -1)
            inner = _GATES[activation](left) * right
        else:
            inner = _ACTIVATIONS[activation](inner)
        return inner @ three if four is None else inner @ three + four

    flat = x.float().reshape(-1, x.shape[-1])
    if not tokens:
        return layer(flat, None).reshape(*x.shape[:-1], -1)
    parts = _groups(tokens, 0 if indices else 1)
    return torch.cat([layer(flat[rows], number) for number, rows in parts]).reshape(*x.shape[:-1], -1)
