"""The fused optimizers, computed tensor by tensor after the same formulas."""

from __future__ import annotations

from typing import Any

from npu_emulator import names as _names
from npu_emulator.optimizers.adaptive import (
    NpuFusedAdadelta,
    NpuFusedAdam,
    NpuFusedAdamW,
    NpuFusedRMSprop,
    NpuFusedSGD,
)
from npu_emulator.optimizers.base import NpuFusedOptimizerBase
from npu_emulator.optimizers.layerwise import NpuFusedAdamP, NpuFusedBertAdam, NpuFusedLamb, NpuFusedRMSpropTF

__all__ = [
    "NpuFusedAdadelta",
    "NpuFusedAdam",
    "NpuFusedAdamP",
    "NpuFusedAdamW",
    "NpuFusedBertAdam",
    "NpuFusedLamb",
    "NpuFusedOptimizerBase",
    "NpuFusedRMSprop",
    "NpuFusedRMSpropTF",
    "NpuFusedSGD",
]
_names.hide("torch_npu.optim", globals())


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise _names.missing("torch_npu.optim", name)
