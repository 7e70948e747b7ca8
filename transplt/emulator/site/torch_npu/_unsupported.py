"""Operators that the chosen torch_npu has no kernel for: findings, or errors as with
TORCH_NPU_FALLBACK_CPU_DISABLE=1."""

from __future__ import annotations

from typing import Any

import torch
from npu_emulator import codes, names
from npu_emulator.config import config
from npu_emulator.record import record
from npu_emulator.user_code import nearest

from . import _kernel

#: Have a kernel for the CPU and a composed one for every other device.
_COMPOSED_ELSEWHERE = {"aten::pixel_shuffle", "aten::pixel_unshuffle"}
_LEVELS = {"warn": "warning", "error": "error", "ignore": "info"}


def _judge(info: Any, op: Any) -> None:
    """An operator without a kernel of its own is fine when PyTorch composes it of others."""
    namespace, _, name = info.name.partition("::")
    if namespace != "aten" or info.name in _COMPOSED_ELSEWHERE or names.has_kernel(name):
        return
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    composed = has(info.name, "CompositeImplicitAutograd") or has(info.name, "CompositeExplicitAutograd")
    info.unsupported = not composed


def _report(info: Any) -> None:
    version = config.torch_version
    what = f"{info.name} has no NPU kernel in torch_npu for PyTorch {version}"
    record.finding(
        nearest(3),
        codes.NO_KERNEL,
        what,
        "it runs on the CPU there, with copies both ways",
        _LEVELS[config.cpu_fallback],
    )
    if config.cpu_fallback == "error":
        raise RuntimeError(f"[emulated npu] {what} [{codes.NO_KERNEL}]")


def install() -> None:
    _kernel.first_use.append(_judge)
    _kernel.on_unsupported.append(_report)
