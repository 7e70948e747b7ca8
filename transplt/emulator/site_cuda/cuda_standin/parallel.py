"""What nn.DataParallel asks C++ for, which a CPU build lacks."""

from __future__ import annotations

from typing import Any

import torch

from .kind import KIND


def _card(index: int) -> Any:
    return torch.device(KIND, index)


def _scatter(tensor: Any, targets: Any, chunk_sizes: Any = None, dim: int = 0, streams: Any = None) -> Any:
    chunks = tensor.split(chunk_sizes, dim) if chunk_sizes else tensor.chunk(len(targets), dim)
    return tuple(chunk.to(_card(d)) for chunk, d in zip(chunks, targets, strict=False))


def _gather(tensors: Any, dim: int, destination: int | None) -> Any:
    device = torch.device("cpu") if destination == -1 else _card(destination or 0)
    return torch.cat([t.to(device) for t in tensors], dim)


def _broadcast_coalesced(tensors: Any, targets: Any, buffer_size: int) -> Any:
    return [[t if t.device.index == d else t.detach().to(_card(d)) for t in tensors] for d in targets]


def _broadcast(tensor: Any, targets: Any) -> Any:
    return [tensor if tensor.device.index == d else tensor.to(_card(d)) for d in targets]


def install() -> None:
    helpers = {
        "_scatter": _scatter,
        "_gather": _gather,
        "_broadcast_coalesced": _broadcast_coalesced,
        "_broadcast": _broadcast,
    }
    for name, helper in helpers.items():
        setattr(torch._C, name, helper)
