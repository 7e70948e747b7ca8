"""How many bytes of each card some state takes: that of an optimizer, whichever torch_npu holds it."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator
from typing import Any

import torch


def state_bytes(state: Any, rounded: Callable[[int], int]) -> collections.Counter[int]:
    """The bytes of the storages below some state, each once, by card; `rounded` is what an allocator makes of one."""
    found: collections.Counter[int] = collections.Counter()
    seen = set[int]()
    for tensor in _tensors(state):
        # A shard's own part, of a tensor that is distributed.
        tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
        if tensor.device.type != "npu" or tensor.layout is not torch.strided:
            continue
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in seen:
            seen.add(storage.data_ptr())
            found[tensor.device.index or 0] += rounded(storage.nbytes())
    return found


def _tensors(value: Any) -> Iterator[Any]:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, torch.Tensor):
            yield each
        elif isinstance(each, dict):
            waiting.extend(each.values())
        elif isinstance(each, (list, tuple)):
            waiting.extend(each)
