"""torch_npu.utils."""

from __future__ import annotations

import threading
from typing import Any

import torch
from npu_emulator import names as _names

from ..npu.utils import get_cann_version
from . import storage

__all__ = [
    "get_cann_version",
    "get_part_combined_tensor",
    "is_combined_tensor_valid",
    "npu_combine_tensors",
    "reset_thread_affinity",
    "save_async",
    "set_thread_affinity",
    "storage",
]


def npu_combine_tensors(list_of_tensor: Any, require_copy_value: bool = True) -> Any:
    """One flat tensor; the given tensors become views of it."""
    if not list_of_tensor:
        return None
    flat = torch.cat([t.detach().reshape(-1) for t in list_of_tensor])
    start = 0
    for tensor in list_of_tensor:
        tensor.data = flat[start : start + tensor.numel()].view(tensor.shape)
        start += tensor.numel()
    return flat if require_copy_value else flat.zero_()


def get_part_combined_tensor(combined_tensor: Any, index: int, size: int) -> Any:
    """`size` elements from `index` on."""
    return None if combined_tensor is None or size == 0 else combined_tensor[index : index + size]


def is_combined_tensor_valid(combined_tensor: Any, list_of_tensor: Any) -> bool:
    """Whether the tensors still are consecutive views of the combined one."""
    if combined_tensor is None:
        return not list_of_tensor
    address = combined_tensor.data_ptr()
    for tensor in list_of_tensor:
        if tensor.data_ptr() != address:
            return False
        address += tensor.numel() * tensor.element_size()
    return True


def save_async(obj: Any, f: Any, *args: Any, **kwargs: Any) -> threading.Thread:
    """torch.save in a thread, started; the object is copied to the CPU first."""
    copied = torch.utils._pytree.tree_map_only(torch.Tensor, lambda t: t.detach().cpu(), obj)
    thread = threading.Thread(target=torch.save, args=(copied, f))
    thread.start()
    return thread


def set_thread_affinity(core_range: Any = None) -> None:
    pass


def reset_thread_affinity() -> None:
    pass


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise _names.missing("torch_npu.utils", name)
