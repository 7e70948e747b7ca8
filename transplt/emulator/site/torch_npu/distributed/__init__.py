"""torch_npu.distributed."""

from __future__ import annotations

from typing import Any

from npu_emulator import names as _names

__all__ = ["is_available", "is_hccl_available", "reinit_process_group"]


def is_available() -> bool:
    import torch.distributed as dist

    return bool(dist.is_available())


def is_hccl_available() -> bool:
    return is_available()


def reinit_process_group(group: Any = None, rebuild_link: bool = True) -> None:
    """Links never break here."""


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise _names.missing("torch_npu.distributed", name)
