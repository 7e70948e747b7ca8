"""Gradients that are averaged in front of a step, for training that no wrapper can follow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import distributed

from transplt.helper.ranks import add_up, exchange_device, world_size

__all__ = ["average"]

#: The size of what is sent at once, in bytes.
_BUCKET = 25 * 2**20


def average(*optimizers: Any) -> None:
    """The gradients of these optimizers become their mean over the ranks: before they are unscaled, clipped or used.

    Every rank has to come here. A parameter that has a gradient on some ranks only counts as 0 on the others; one that
    has none on any keeps None. RuntimeError, on all ranks, if any gradient is sparse.
    """
    if world_size() == 1:
        return
    groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    parameters = list({id(parameter): parameter for group in groups for parameter in group["params"]}.values())
    if not parameters:
        return
    kinds = [0 if p.grad is None else 2 if p.grad.layout != torch.strided else 1 for p in parameters]
    found = torch.tensor(kinds, dtype=torch.int32, device=exchange_device())
    distributed.all_reduce(found, distributed.ReduceOp.MAX)
    kinds = found.tolist()
    if 2 in kinds:
        place = kinds.index(2)
        raise RuntimeError(f"average() takes no sparse gradients: parameter {place}, {tuple(parameters[place].shape)}")
    with torch.no_grad():
        for bucket in _buckets([parameter for parameter, kind in zip(parameters, kinds, strict=True) if kind]):
            device = exchange_device()
            parts = [p.grad if p.grad is not None else torch.zeros_like(p) for p in bucket]
            # Complex numbers as pairs: a card joins none of 128 bits.
            pairs = [torch.view_as_real(p.resolve_conj()) if p.is_complex() else p for p in map(torch.detach, parts)]
            flat = torch.cat([pair.reshape(-1).to(device) for pair in pairs])
            mean = add_up(flat.div_(world_size())).split([pair.numel() for pair in pairs])
            for parameter, part, pair, values in zip(bucket, parts, pairs, mean, strict=True):
                values = values.view(pair.shape)
                part.detach().copy_(torch.view_as_complex(values) if part.is_complex() else values)
                parameter.grad = part


def _buckets(parameters: list[torch.Tensor]) -> Iterator[list[torch.Tensor]]:
    """The parameters by type, in their order, in lists of at most 25 MB, or of one that is larger."""
    for dtype in dict.fromkeys(parameter.dtype for parameter in parameters):
        bucket: list[torch.Tensor] = []
        size = 0
        for parameter in parameters:
            if parameter.dtype == dtype:
                size += parameter.numel() * parameter.element_size()
                if bucket and size > _BUCKET:
                    yield bucket
                    bucket, size = [], parameter.numel() * parameter.element_size()
                bucket.append(parameter)
        yield bucket
