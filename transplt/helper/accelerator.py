"""The accelerator of a project that runs on NPUs, on CUDA and on a CPU from one source, chosen at import.

Without an NPU everything is what it was: the names of torch.cuda, and "cuda" also where there is no card. Constants and
no calls, since a call would break the graphs of torch.compile. Asking torch_npu how many cards there are opens none
(torch_npu 2.13 asks the driver): a child that is forked afterwards computes on the card, and ASCEND_RT_VISIBLE_DEVICES
may still be set, which is_available() would have read for good. The lines are short: a file of these has to fit a
project's own limit.
"""

from __future__ import annotations

import importlib.util
import os
from typing import Any

import torch

if importlib.util.find_spec("torch_npu") is not None:
    # The cards that CUDA is shown; CANN reads this once.
    if "CUDA_VISIBLE_DEVICES" in os.environ:
        _shown = os.environ["CUDA_VISIBLE_DEVICES"]
        if _shown[:1].isdigit():
            os.environ.setdefault("ASCEND_RT_VISIBLE_DEVICES", _shown)
    torch_npu = importlib.import_module("torch_npu")  # it has no stubs

__all__ = [
    "DEVICE_ACTIVITY", "DEVICE_TYPE", "DIST_BACKEND", "LAUNCH_BLOCKING", "SUM_DTYPE", "VISIBLE_DEVICES",
    "autocast", "custom_bwd", "custom_fwd", "device", "device_module", "grad_scaler",
    "ipc_collect", "profiler",
]  # fmt: skip

_has_npu = hasattr(torch, "npu") and torch.npu.device_count() > 0
#: "npu" where there is an NPU, else "cuda", also without any card.
DEVICE_TYPE = "npu" if _has_npu else "cuda"
#: The namespace of the accelerator: torch.npu or torch.cuda.
device_module = getattr(torch, DEVICE_TYPE)
#: What torch.distributed uses between its cards.
DIST_BACKEND = "hccl" if _has_npu else "nccl"
#: The widest float that it sums over its cards: HCCL refuses float64.
SUM_DTYPE = torch.float32 if _has_npu else torch.float64
#: The environment variable that says which cards a process sees.
VISIBLE_DEVICES = ("ASCEND_RT" if _has_npu else "CUDA") + "_VISIBLE_DEVICES"
#: The environment variable that makes each launch wait for the one before.
LAUNCH_BLOCKING = ("ASCEND" if _has_npu else "CUDA") + "_LAUNCH_BLOCKING"
_amp = getattr(torch, "amp", None)
#: The profiler of the accelerator: torch_npu.profiler or torch.profiler.
profiler = torch_npu.profiler if _has_npu else torch.profiler
#: What it records of the accelerator.
DEVICE_ACTIVITY = getattr(profiler.ProfilerActivity, DEVICE_TYPE.upper())


def device(index: Any = None) -> torch.device:
    """The card of this number; without one, the accelerator."""
    if index is None:
        return torch.device(DEVICE_TYPE)
    if isinstance(index, int):
        return torch.device(DEVICE_TYPE, index)
    return torch.device(index)  # a name, or a device


def autocast(**options: Any) -> Any:
    """Mixed precision on the accelerator; the options are autocast's."""
    if hasattr(torch, "autocast"):  # since torch 1.10
        return torch.autocast(DEVICE_TYPE, **options)
    return device_module.amp.autocast(**options)


def grad_scaler(**options: Any) -> Any:
    """The gradient scaler of the accelerator; the options are GradScaler's."""
    if hasattr(_amp, "GradScaler"):  # since torch 2.3
        return torch.amp.GradScaler(DEVICE_TYPE, **options)
    return device_module.amp.GradScaler(**options)


def custom_fwd(fwd: Any = None, **options: Any) -> Any:
    """The decorator of a forward that autocast runs, for the accelerator."""
    if hasattr(_amp, "custom_fwd"):  # since torch 2.4
        options["device_type"] = DEVICE_TYPE
        return torch.amp.custom_fwd(fwd, **options)
    return device_module.amp.custom_fwd(fwd, **options)


def custom_bwd(bwd: Any) -> Any:
    """The decorator of the backward of such a function."""
    if hasattr(_amp, "custom_bwd"):  # since torch 2.4
        return torch.amp.custom_bwd(bwd, device_type=DEVICE_TYPE)
    return device_module.amp.custom_bwd(bwd)


def ipc_collect() -> None:
    """Free what other processes no longer share, where the accelerator can."""
    if hasattr(device_module, "ipc_collect"):  # torch_npu: since 2.6
        device_module.ipc_collect()
