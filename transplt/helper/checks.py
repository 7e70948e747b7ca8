"""A check, for when it is in doubt, that all ranks hold the same."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import distributed
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parallel import DistributedDataParallel

from transplt.helper.draws import order_state
from transplt.helper.ranks import world_size

__all__ = ["check_ranks"]

_checks_asked = 0


def check_ranks(*holders: Any, every: int) -> None:
    """At every so manieth call, compare what the ranks hold, bit by bit; RuntimeError on all ranks if it differs.

    Holders are models (parameters and buffers), optimizers (parameters and numbers such as lr), and whatever has a
    state_dict() (schedulers, scalers); the orders of data are looked at in any case. Not compared are running
    statistics of BatchNorm and buffers in DistributedDataParallel: they are each rank's own until the next forward pass
    or evaluation. Every rank has to come here; `every=0` does nothing.
    """
    global _checks_asked
    _checks_asked += 1
    if every <= 0 or world_size() == 1 or _checks_asked % every:
        return
    seen: set[int] = set()
    parts = [("the number of checks", _checks_asked), ("the order of data", order_state())]
    parts += [part for holder in holders for part in _parts(holder, seen)]
    mine = [(name, hashlib.sha256(repr(_exact(part)).encode()).hexdigest()) for name, part in parts]
    all_of_them: list[Any] = [None] * world_size()
    distributed.all_gather_object(all_of_them, mine)
    for place in range(max(map(len, all_of_them))):
        found = [tuple(theirs[place : place + 1]) for theirs in all_of_them]
        others = [rank for rank, part in enumerate(found) if part != found[0]]
        if others:
            name = next(part[0][0] for part in found if part)
            raise RuntimeError(f"ranks differ: {name} of rank {', '.join(map(str, others))} is not that of rank 0")


def _parts(holder: Any, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """Name and value of what is compared; tensors only once."""
    kind = type(holder).__name__
    if isinstance(holder, torch.nn.Module):
        tensors = list(holder.named_parameters())
        if not isinstance(holder, DistributedDataParallel):
            norms = [module for module in holder.modules() if isinstance(module, _BatchNorm)]
            own = {id(buffer) for module in norms for buffer in module.buffers()}
            tensors += [(name, buffer) for name, buffer in holder.named_buffers() if id(buffer) not in own]
    elif isinstance(holder, torch.optim.Optimizer):
        groups = list(enumerate(holder.param_groups))
        tensors = [(f"params[{n}][{i}]", p) for n, group in groups for i, p in enumerate(group["params"])]
        numbers = [(f"{kind}[{n}].{name}", value) for n, group in groups for name, value in group.items()]
        yield from ((name, value) for name, value in numbers if not name.endswith(".params"))
    else:
        tensors = []
        yield from ((f"{kind}.{name}", value) for name, value in holder.state_dict().items())
    for name, tensor in tensors:
        if id(tensor) not in seen:
            seen.add(id(tensor))
            yield f"{kind}.{name}", tensor


def _exact(value: Any) -> Any:
    """What is equal if and only if the value is, on every rank: objects count by their type."""
    if isinstance(value, torch.Tensor):
        flat = value.detach().cpu().contiguous()
        data = ctypes.string_at(flat.data_ptr(), flat.numel() * flat.element_size()) if flat.numel() else b""
        return str(flat.dtype), tuple(flat.shape), hashlib.sha256(data).hexdigest()
    if hasattr(value, "tolist"):  # NumPy's
        return _exact(value.tolist())
    if isinstance(value, dict):
        return [(_exact(name), _exact(part)) for name, part in value.items()]
    if isinstance(value, (list, tuple)):
        return [_exact(part) for part in value]
    return value if isinstance(value, (str, int, float, bytes, type(None))) else type(value).__name__
