"""Switches of the runtime: kept where they can be read back, without effect."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

__all__ = [
    "CubeMathType",
    "finalize_dump",
    "get_device_limit",
    "get_mm_bmm_format_nd",
    "init_dump",
    "is_jit_compile_false",
    "set_aoe",
    "set_compile_mode",
    "set_device_limit",
    "set_dump",
    "set_mm_bmm_format_nd",
    "set_option",
]
_state: dict[str, Any] = {"jit_compile": False, "mm_bmm_nd": True}


class CubeMathType(IntEnum):
    """How matrix units compute."""

    KEEP_DTYPE = 0
    ALLOW_FP32_DOWN_PRECISION = 1
    USE_FP16 = 2
    USE_HF32 = 3


def set_option(option: dict[str, Any]) -> None:
    if not isinstance(option, dict):
        raise TypeError(f"[emulated npu] set_option takes a dict of options, not {type(option).__name__}")
    _state.update(option)


def set_compile_mode(jit_compile: bool = False) -> None:
    _state["jit_compile"] = bool(jit_compile)


def is_jit_compile_false() -> bool:
    return not _state["jit_compile"]


def set_mm_bmm_format_nd(is_nd: bool = True) -> None:
    _state["mm_bmm_nd"] = bool(is_nd)


def get_mm_bmm_format_nd() -> bool:
    return bool(_state["mm_bmm_nd"])


def set_aoe(dump_path: str) -> None:
    pass


def init_dump() -> None:
    pass


def set_dump(cfg_file: str) -> None:
    pass


def finalize_dump() -> None:
    pass


def set_device_limit(device: Any, cube_num: int = -1, vector_num: int = -1) -> None:
    pass


def get_device_limit(device: Any) -> dict[str, int]:
    return {"cube_core_num": 24, "vector_core_num": 48}
