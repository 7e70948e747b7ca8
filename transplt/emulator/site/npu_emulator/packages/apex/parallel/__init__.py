"""apex's own data parallelism is not adapted to Ascend; torch has DistributedDataParallel, amp has combine_ddp."""

from __future__ import annotations

from typing import Any

_NOT_ADAPTED = ("DistributedDataParallel", "Reducer", "SyncBatchNorm", "convert_syncbn_model")


def __getattr__(name: str) -> Any:
    if name in _NOT_ADAPTED:

        def missing(*args: Any, **kwargs: Any) -> Any:
            raise RuntimeError(f"[emulated apex] apex.parallel.{name} is not adapted to Ascend: use that of torch.nn")

        return missing
    raise AttributeError(f"module 'apex.parallel' has no attribute {name!r}")
