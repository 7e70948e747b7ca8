"""Models that are the same on all ranks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import distributed
from torch.nn.parallel import DataParallel, DistributedDataParallel

from transplt.helper.ranks import card, take_first, world_size

__all__ = ["alike", "bare", "buffers_of_first", "to_own_card", "wrap"]


def wrap(model: torch.nn.Module, **options: Any) -> torch.nn.Module:
    """`model` in DistributedDataParallel, which averages gradients in the backward pass, where the model lies.

    On the CPU it is exchanged by gloo, whatever card there is; one that lies on this rank's card in part moves there.
    `options` are those of DistributedDataParallel. A model that is wrapped already is returned; without a process
    group, in a script that does not call start(), it is the model. All ranks have to come here.
    """
    if isinstance(model, DistributedDataParallel):
        return model
    model, device = bare(model), card()
    kinds = {tensor.device.type for tensor in _tensors(model)}
    if device.type in kinds - {"cpu"}:
        model = model.to(device) if len(kinds) > 1 else model
        options = {"device_ids": [device.index], **options}
    if not distributed.is_initialized():
        return model
    if device.type not in kinds:
        options = {"process_group": distributed.new_group(backend="gloo"), **options}
    return DistributedDataParallel(model, **options)


def bare(model: torch.nn.Module) -> torch.nn.Module:
    """The model inside a DistributedDataParallel or DataParallel; any other model itself."""
    return model.module if isinstance(model, (DistributedDataParallel, DataParallel)) else model


def to_own_card(storage: Any, location: str) -> Any:
    """As `map_location` of torch.load: what was saved on a card goes to that of this rank, all else where it was."""
    on_card = location.partition(":")[0] in ("cuda", "npu")
    return torch.serialization.default_restore_location(storage, str(card())) if on_card else None


def alike(*holders: torch.nn.Module | torch.optim.Optimizer | torch.Tensor) -> None:
    """All ranks take rank 0's parameters and buffers of models, parameters of optimizers, and tensors, in place.

    Every rank has to come here with the same holders, wherever their tensors lie. TypeError for other holders.
    """
    for holder in holders:
        for tensor in _tensors(holder):
            if world_size() > 1:
                take_first(tensor)


def buffers_of_first(model: torch.nn.Module) -> None:
    """All ranks take rank 0's buffers (running statistics of BatchNorm), as before an evaluation or a checkpoint."""
    if world_size() > 1:
        for buffer in model.buffers():
            take_first(buffer)


def _tensors(holder: Any) -> Iterator[torch.Tensor]:
    if isinstance(holder, torch.nn.Module):
        yield from holder.parameters()
        yield from holder.buffers()
    elif isinstance(holder, torch.Tensor):
        yield holder
    elif isinstance(holder, torch.optim.Optimizer):
        for group in holder.param_groups:
            yield from group["params"]
    else:
        raise TypeError(f"alike() takes models, optimizers and tensors, not a {type(holder).__name__}")
