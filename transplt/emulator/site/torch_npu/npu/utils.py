"""Small services of the runtime."""

from __future__ import annotations

from typing import Any

__all__ = [
    "are_compatible_impl_enabled",
    "check_uce_in_memory",
    "clear_npu_overflow_flag",
    "current_blas_handle",
    "disable_deterministic_with_backward",
    "enable_deterministic_with_backward",
    "get_cann_version",
    "get_npu_overflow_flag",
    "get_sync_debug_mode",
    "get_task_queue_enable",
    "ipc_collect",
    "is_support_inf_nan",
    "npu_check_overflow",
    "restart_device",
    "set_deterministic_level",
    "set_op_timeout_ms",
    "set_sync_debug_mode",
    "set_task_queue_enable",
    "stop_device",
    "stress_detect",
    "use_compatible_impl",
]
_state: dict[str, Any] = {"sync": 0, "queue": 1, "compatible": False}


def _nothing(*args: Any, **kwargs: Any) -> None:
    """Without effect on a device that is synchronous, deterministic and never fails."""


set_deterministic_level = set_op_timeout_ms = stop_device = restart_device = ipc_collect = clear_npu_overflow_flag = (
    _nothing
)


def set_sync_debug_mode(debug_mode: int | str) -> None:
    _state["sync"] = (
        {"default": 0, "warn": 1, "error": 2}.get(debug_mode, debug_mode) if isinstance(debug_mode, str) else debug_mode
    )


def get_sync_debug_mode() -> int:
    return int(_state["sync"])


def set_task_queue_enable(mode: int) -> None:
    _state["queue"] = mode


def get_task_queue_enable() -> int:
    return int(_state["queue"])


def use_compatible_impl(is_enable: bool) -> None:
    _state["compatible"] = bool(is_enable)


def are_compatible_impl_enabled() -> bool:
    return bool(_state["compatible"])


def enable_deterministic_with_backward(tensor: Any) -> Any:
    return tensor


disable_deterministic_with_backward = enable_deterministic_with_backward


def is_support_inf_nan() -> bool:
    return True


def get_npu_overflow_flag() -> bool:
    return False


def npu_check_overflow(grad: Any) -> bool:
    """Whether a gradient (tensor or number) holds inf or nan."""
    import torch

    return bool(torch.as_tensor(grad).float().sum().isfinite().logical_not().item())


def current_blas_handle() -> None:
    """The real one warns and returns None."""
    from .. import _limits

    _limits.report_call("torch.cuda.current_blas_handle")


def check_uce_in_memory(device_id: int) -> int:
    return 0


def stress_detect(detect_type: str = "aic") -> int:
    return 0


def get_cann_version(module: str = "CANN") -> str:
    return "emulated"
