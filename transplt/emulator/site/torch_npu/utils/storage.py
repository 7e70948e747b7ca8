"""torch_npu.utils.storage: what checkpoints of npu tensors name, so that they can be read, and allowed by name."""

from __future__ import annotations

from typing import Any

import torch

__all__: list[str] = []


def _rebuild_npu_tensor(
    storage: Any, storage_offset: int, size: Any, stride: Any, requires_grad: bool, backward_hooks: Any, info: Any
) -> Any:
    """A tensor of a file that an old torch_npu wrote; `info` is its format, which is plain here."""
    rebuilt = torch._utils._rebuild_tensor_v2(storage, storage_offset, size, stride, requires_grad, backward_hooks)
    return rebuilt if rebuilt.device.type == "npu" else rebuilt.to("npu")


torch.serialization.add_safe_globals([_rebuild_npu_tensor])
