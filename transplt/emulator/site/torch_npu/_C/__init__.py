"""What programs import of the compiled part of torch_npu."""

from __future__ import annotations

from . import _distributed_c10d

__all__ = ["_distributed_c10d"]
