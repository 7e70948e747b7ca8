# SPDX-License-Identifier: 0BSD
# Functions that this project calls to run on Ascend NPUs. Written by transplt 0.1.0; it belongs to the project now:
# change it as you like, transplt does not edit it again. 0BSD: use, copy, change and distribute it for any purpose,
# with or without fee; it comes without any warranty.

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import DataParallel, Module


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
