"""The accelerator that this project runs on: an NPU, else CUDA."""

import importlib.util
from typing import Any

import torch

if importlib.util.find_spec("torch_npu") is not None:
    torch_npu = importlib.import_module("torch_npu")  # it has no stubs

_has_npu = hasattr(torch, "npu") and torch.npu.device_count() > 0
#: "npu" where there is an NPU, else "cuda", also without any card.
DEVICE_TYPE = "npu" if _has_npu else "cuda"
#: The namespace of the accelerator: torch.npu or torch.cuda.
device_module = getattr(torch, DEVICE_TYPE)
#: What torch.distributed uses between its cards.
DIST_BACKEND = "hccl" if _has_npu else "nccl"
_amp = getattr(torch, "amp", None)


def grad_scaler(**options: Any) -> Any:
    """The gradient scaler of the accelerator; the options are GradScaler's."""
    if hasattr(_amp, "GradScaler"):  # since torch 2.3
        return torch.amp.GradScaler(DEVICE_TYPE, **options)
    return device_module.amp.GradScaler(**options)
