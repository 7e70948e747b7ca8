"""Attention and linear-algebra switches: in torch_npu they are accepted with a warning and change nothing."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any


def _ignored(name: str) -> None:
    warnings.warn(f"torch.npu.{name} has no effect on npu", stacklevel=3)


def enable_flash_sdp(enabled: bool) -> None:
    _ignored("enable_flash_sdp")


def enable_math_sdp(enabled: bool) -> None:
    _ignored("enable_math_sdp")


def enable_mem_efficient_sdp(enabled: bool) -> None:
    _ignored("enable_mem_efficient_sdp")


def flash_sdp_enabled() -> bool:
    return True


math_sdp_enabled = mem_efficient_sdp_enabled = flash_sdp_enabled


def preferred_linalg_library(backend: Any = None) -> None:
    _ignored("preferred_linalg_library")


@contextlib.contextmanager
def sdp_kernel(enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True) -> Any:
    _ignored("sdp_kernel")
    yield


class _FftPlanCache:
    size = 0
    max_size = 50

    def clear(self) -> None:
        pass


fft_plan_cache = _FftPlanCache()
