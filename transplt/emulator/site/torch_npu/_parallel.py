"""nn.DataParallel's C++ helpers (absent from CPU builds; torch_npu brings its own) and torch.accelerator."""

from __future__ import annotations

from typing import Any

import torch

from . import _devices as devices


def _npu(index: int) -> Any:
    return torch.device("npu", index)


def _scatter(tensor: Any, targets: Any, chunk_sizes: Any = None, dim: int = 0, streams: Any = None) -> Any:
    chunks = tensor.split(chunk_sizes, dim) if chunk_sizes else tensor.chunk(len(targets), dim)
    return tuple(chunk.to(_npu(d)) for chunk, d in zip(chunks, targets, strict=False))


def _gather(tensors: Any, dim: int, destination: int | None) -> Any:
    device = torch.device("cpu") if destination == -1 else _npu(destination or 0)
    return torch.cat([t.to(device) for t in tensors], dim)


def _broadcast_coalesced(tensors: Any, targets: Any, buffer_size: int) -> Any:
    return [[t if t.device.index == d else t.detach().to(_npu(d)) for t in tensors] for d in targets]


def _broadcast(tensor: Any, targets: Any) -> Any:
    return [tensor if tensor.device.index == d else tensor.to(_npu(d)) for d in targets]


def install(npu: Any) -> None:
    """`npu` is the device module (torch.npu)."""
    helpers = {"_scatter": _scatter, "_gather": _gather, "_broadcast_coalesced": _broadcast_coalesced, "_broadcast": _broadcast}
    for name, helper in helpers.items():
        if not hasattr(torch._C, name):
            setattr(torch._C, name, helper)

    def set_index(device: Any) -> None:
        npu.set_device(device)

    accelerator = {
        "device_count": lambda: devices.COUNT,
        "current_device_index": lambda: devices.state.device,
        "current_device_idx": lambda: devices.state.device,
        "synchronize": lambda *device: None,
        "set_device_index": set_index,
        "set_device_idx": set_index,
        "current_stream": npu.current_stream,
        "set_stream": npu.set_stream,
        "empty_cache": npu.empty_cache,
        "memory_stats": npu.memory_stats,
        "memory_allocated": npu.memory_allocated,
        "max_memory_allocated": npu.max_memory_allocated,
        "memory_reserved": npu.memory_reserved,
        "max_memory_reserved": npu.max_memory_reserved,
        "reset_peak_memory_stats": npu.reset_peak_memory_stats,
        "reset_accumulated_memory_stats": npu.reset_accumulated_memory_stats,
        "get_memory_info": npu.mem_get_info,
    }
    for name, function in accelerator.items():
        if hasattr(torch.accelerator, name):
            setattr(torch.accelerator, name, function)
