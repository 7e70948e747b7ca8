"""DataParallel on one card of an NPU host, and as it is on CUDA.

torch_npu has no `torch._C._scatter` (it belongs to CUDA builds of torch), with which DataParallel divides a batch even
for one card. A subclass that moves the batch instead keeps all else: the names in checkpoints, `.module`, `isinstance`,
and inputs that come from the host. DataParallel knows other devices than CUDA since torch 2.1 (torch/_utils.py,
`_get_available_device_type`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import DataParallel, Module

__all__ = ["OneCardDataParallel"]


class OneCardDataParallel(DataParallel):  # type: ignore[misc]
    """DataParallel; on NPUs one card gets the whole batch: the first, or that of the rank in a process group."""

    def __init__(
        self, module: Module, device_ids: Sequence[Any] | None = None, output_device: Any = None, dim: int = 0
    ) -> None:
        if hasattr(torch, "npu") and torch.npu.is_available():
            of_rank = [torch.npu.current_device()] if torch.distributed.is_initialized() else None
            device_ids, output_device = of_rank or [device_ids[0] if device_ids else 0], None
        super().__init__(module, device_ids, output_device, dim)

    def scatter(self, inputs: Any, kwargs: Any, device_ids: Any) -> Any:
        if len(device_ids) > 1:
            return super().scatter(inputs, kwargs, device_ids)

        def move(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                return value.to(self.src_device_obj)
            if isinstance(value, tuple) and hasattr(value, "_fields"):
                return type(value)(*map(move, value))
            if isinstance(value, (list, tuple)):
                return type(value)(map(move, value))
            if isinstance(value, dict):
                return type(value)((key, move(each)) for key, each in value.items())
            return value

        return [move(inputs)], [move(kwargs)]
