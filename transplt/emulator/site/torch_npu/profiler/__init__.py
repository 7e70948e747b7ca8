"""torch_npu.profiler: its API, recording what PyTorch's CPU profiler sees. The traces show nothing about an NPU."""

from __future__ import annotations

import enum
import os
from collections.abc import Callable
from typing import Any

import torch.profiler as _torch_profiler
from npu_emulator import names as _names
from torch.profiler import ProfilerAction, schedule

__all__ = [
    "AiCMetrics",
    "ExportType",
    "HostSystem",
    "ProfilerAction",
    "ProfilerActivity",
    "ProfilerLevel",
    "_ExperimentalConfig",
    "profile",
    "schedule",
    "supported_activities",
    "supported_ai_core_metrics",
    "supported_export_type",
    "supported_profiler_level",
    "tensorboard_trace_handler",
]


class ProfilerActivity(enum.Enum):
    CPU = 0
    NPU = 1


class ProfilerLevel(enum.Enum):
    Level_none = "Level_none"
    Level0 = "Level0"
    Level1 = "Level1"
    Level2 = "Level2"


class AiCMetrics(enum.Enum):
    AiCoreNone = "AiCoreNone"
    PipeUtilization = "PipeUtilization"
    ArithmeticUtilization = "ArithmeticUtilization"
    Memory = "Memory"
    MemoryL0 = "MemoryL0"
    MemoryUB = "MemoryUB"
    ResourceConflictRatio = "ResourceConflictRatio"
    L2Cache = "L2Cache"
    MemoryAccess = "MemoryAccess"


class ExportType(enum.Enum):
    Text = "text"
    Db = "db"


class HostSystem(enum.Enum):
    CPU = "cpu"
    MEM = "mem"
    DISK = "disk"
    NETWORK = "network"
    OSRT = "osrt"


class _ExperimentalConfig:
    """Takes the settings of torch_npu 2.13; none of them changes what is recorded here."""

    def __init__(
        self,
        profiler_level: Any = ProfilerLevel.Level0,
        aic_metrics: Any = AiCMetrics.AiCoreNone,
        l2_cache: bool = False,
        msprof_tx: bool = False,
        mstx: bool = False,
        data_simplification: bool = True,
        record_op_args: bool = False,
        op_attr: bool = False,
        gc_detect_threshold: float | None = None,
        export_type: Any = ExportType.Text,
        host_sys: Any = None,
        mstx_domain_include: Any = None,
        mstx_domain_exclude: Any = None,
        sys_io: bool = False,
        sys_interconnection: bool = False,
    ) -> None:
        self.profiler_level = profiler_level


def supported_activities() -> set[ProfilerActivity]:
    return set(ProfilerActivity)


def supported_profiler_level() -> set[ProfilerLevel]:
    return set(ProfilerLevel)


def supported_ai_core_metrics() -> set[AiCMetrics]:
    return set(AiCMetrics)


def supported_export_type() -> set[ExportType]:
    return set(ExportType)


def tensorboard_trace_handler(
    dir_name: str | None = None, worker_name: str | None = None, analyse_flag: bool = True, async_mode: bool = False
) -> Callable[[Any], None]:
    """A handler that makes the folder; no trace is written."""

    def handle(profiler: Any) -> None:
        if dir_name:
            os.makedirs(dir_name, exist_ok=True)

    return handle


class profile(_torch_profiler.profile):
    """torch_npu.profiler.profile. Unlike PyTorch's, it has no key_averages() and no events()."""

    def __init__(
        self,
        *,
        activities: Any = None,
        schedule: Any = None,
        on_trace_ready: Any = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        custom_trace_id_callback: Any = None,
        use_cuda: Any = None,
    ) -> None:
        wrong = [a for a in activities or () if not isinstance(a, ProfilerActivity)]
        if wrong:
            raise TypeError(
                f"[emulated npu] activities are torch_npu.profiler.ProfilerActivity members, not {wrong[0]!r}"
            )
        super().__init__(
            activities=[_torch_profiler.ProfilerActivity.CPU],
            schedule=schedule,
            on_trace_ready=on_trace_ready,
            record_shapes=record_shapes,
            with_stack=with_stack,
        )

    def __getattribute__(self, name: str) -> Any:
        if name in ("key_averages", "events"):
            raise AttributeError(f"torch_npu.profiler.profile has no {name}(): read the exported trace instead")
        return super().__getattribute__(name)


_names.hide("torch_npu.profiler", globals())


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise _names.missing("torch_npu.profiler", name)
