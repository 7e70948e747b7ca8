"""ProcessGroupHCCL: the backend of a group, as programs ask for it, and its options.

The names: torch_npu/csrc/distributed/Init.cpp. Groups are gloo's here, so the options are kept and change nothing.
"""

from __future__ import annotations

import datetime
from typing import Any

from torch._C._distributed_c10d import ProcessGroupGloo


class _Options:
    """The options of a group: the attributes that torch_npu has, and no others."""

    __slots__ = ("global_ranks_in_group", "group_id", "hccl_config", "is_high_priority_stream", "op_timeout")

    def __init__(self) -> None:
        self.op_timeout = datetime.timedelta(minutes=30)
        self.is_high_priority_stream = False
        self.global_ranks_in_group: list[int] = []
        self.hccl_config: dict[str, Any] = {}
        self.group_id = ""


class _Kind(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, ProcessGroupGloo)


class ProcessGroupHCCL(metaclass=_Kind):
    """Any backend of the emulated NPU is an instance; a call makes one."""

    Options = _Options

    def __new__(cls, store: Any, rank: int, size: int, options: Any = None) -> Any:
        wait = options.op_timeout if isinstance(options, _Options) else options or datetime.timedelta(minutes=30)
        return ProcessGroupGloo(store, rank, size, wait)
