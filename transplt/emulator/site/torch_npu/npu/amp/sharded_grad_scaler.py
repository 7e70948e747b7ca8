"""Gradient scaling for FSDP."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name == "_ShardedGradScaler":
        from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler

        class _ShardedGradScaler(ShardedGradScaler):  # type: ignore[misc]
            """PyTorch's, for the npu."""

            def __init__(self, *args: Any, **kwargs: Any) -> None:
                super().__init__("npu", *args, **kwargs)

        return _ShardedGradScaler
    raise AttributeError(name)
