"""Sending CUDA tensors to other processes: their memory becomes shared, and both sides see the same values."""

from __future__ import annotations

from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch
from torch.multiprocessing import reductions

from .kernel import move_into
from .kind import EMULATED, KIND
from .relabel import to_card, to_cpu

#: Address of shared memory -> the CPU tensor that owns it, for tensors that were sent before.
_shared: dict[int, Any] = {}


def _in_shared_memory(tensor: Any) -> Any:
    """A CPU tensor in shared memory that the CUDA tensor (in place) becomes an alias of."""
    known = _shared.get(tensor.data_ptr())
    if known is not None and known.shape == tensor.shape and known.stride() == tensor.stride():
        return known
    plain = tensor.detach()
    moved = torch.empty_strided(plain.shape, plain.stride(), dtype=plain.dtype).share_memory_()
    moved.copy_(to_cpu(plain))
    with torch.no_grad():
        move_into(tensor, moved, tensor.device.index)
    _shared[moved.data_ptr()] = moved
    return moved


def rebuild_on_card(function: Any, arguments: Any, index: int, parameter: bool, requires_grad: bool) -> Any:
    """The receiving side."""
    tensor = to_card(function(*arguments), index)
    if parameter:
        return torch.nn.Parameter(tensor, requires_grad)
    return tensor.requires_grad_(requires_grad)


def _reduce(tensor: Any) -> Any:
    if tensor.device.type != KIND:
        return reductions.reduce_tensor(tensor)
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(f"{EMULATED} only leaf tensors and tensors without gradient can be sent to another process")
    function, arguments = reductions.reduce_tensor(_in_shared_memory(tensor))
    parameter = isinstance(tensor, torch.nn.Parameter)
    return rebuild_on_card, (function, arguments, tensor.device.index, parameter, tensor.requires_grad)


def install() -> None:
    for kind in (torch.Tensor, torch.nn.Parameter):
        ForkingPickler.register(kind, _reduce)
