"""nn.DataParallel, which torch_npu does not support, and torch.accelerator.

Over several cards it runs here all the same, as a finding, so that the rest of the script is tried too. Over one it
runs beside an NPU as well: torch_npu has `_scatter` and its like since 2.1 (initCommMethods, csrc/npu/Module.cpp).
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from npu_emulator import limits
from npu_emulator.record import record
from npu_emulator.user_code import nearest

from . import _devices as devices
from ._kind import KIND


def _npu(index: int) -> Any:
    return torch.device(KIND, index)


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


def _report(name: str, count: int) -> None:
    rule = limits.call(name)
    if count > 1 and rule is not None:
        record.finding(nearest(3), rule.code, f"{rule.message} (over {count} cards)", rule.help, "warning")


def _report_data_parallel() -> None:
    parallel: Any = torch.nn.DataParallel
    original_init, original_call = parallel.__init__, torch.nn.parallel.data_parallel

    @functools.wraps(original_init)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original_init(self, *args, **kwargs)
        _report("torch.nn.DataParallel", len(self.device_ids))

    @functools.wraps(original_call)
    def data_parallel(module: Any, inputs: Any, device_ids: Any = None, *args: Any, **kwargs: Any) -> Any:
        _report("torch.nn.parallel.data_parallel", devices.count() if device_ids is None else len(list(device_ids)))
        return original_call(module, inputs, device_ids, *args, **kwargs)

    parallel.__init__ = init
    torch.nn.parallel.data_parallel = data_parallel


def install_helpers() -> None:
    """What DataParallel asks C++ for; a CUDA build has its own, which know no npu."""
    helpers = {
        "_scatter": _scatter,
        "_gather": _gather,
        "_broadcast_coalesced": _broadcast_coalesced,
        "_broadcast": _broadcast,
    }
    for name, helper in helpers.items():
        setattr(torch._C, name, helper)


def install(npu: Any) -> None:
    """`npu` is the device module (torch.npu)."""
    install_helpers()
    _report_data_parallel()

    def set_index(device: Any) -> None:
        npu.set_device(device)

    accelerator = {
        "device_count": devices.count,
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
