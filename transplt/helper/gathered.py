"""Tensors of all ranks in one, with gradients, as flash-attn's utilities for several cards have it.

Source: utils/distributed.py of flash-attn 2.8.4 (Dao-AILab/flash-attention@0251105).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import distributed

__all__ = ["all_gather"]


def all_gather(input_: torch.Tensor, process_group: Any) -> torch.Tensor:
    """flash_attn.utils.distributed.all_gather: the rows of all ranks of a group, (ranks * rows, ...).

    The gradients that the ranks have for them are added up.
    """
    out: torch.Tensor = _Gathered.apply(input_, process_group)
    return out


class _Gathered(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, rows: torch.Tensor, group: Any) -> torch.Tensor:
        ctx.group = group
        out = rows.new_empty(distributed.get_world_size(group) * rows.shape[0], *rows.shape[1:])
        distributed.all_gather_into_tensor(out, rows.contiguous(), group=group)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        ranks = distributed.get_world_size(ctx.group)
        if distributed.get_backend(ctx.group) == "gloo":  # which scatters no sums
            gradient = gradient.contiguous().clone()
            distributed.all_reduce(gradient, group=ctx.group)
            return gradient.chunk(ranks)[distributed.get_rank(ctx.group)], None
        out = gradient.new_empty(gradient.shape[0] // ranks, *gradient.shape[1:])
        distributed.reduce_scatter_tensor(out, gradient.contiguous(), group=ctx.group)
        return out, None
