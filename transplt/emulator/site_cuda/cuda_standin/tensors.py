"""What a CPU build refuses of CUDA in its own Python and C++: old tensor types, default types, versions."""

from __future__ import annotations

from typing import Any

import torch

from . import legacy, runtime, streams


def install() -> None:
    """torch is there, and the device too."""
    cuda: Any = torch.cuda
    for name, kind in legacy.types().items():
        setattr(cuda, name, kind)
    torch.version.cuda = f"{runtime.CUDA_VERSION // 1000}.{runtime.CUDA_VERSION % 1000 // 10}"
    cudnn: Any = torch.backends.cudnn
    cudnn.is_available = lambda: runtime.count() > 0
    cudnn.version = lambda: runtime.CUDNN_VERSION
    cudnn.is_acceptable = lambda tensor: False
    _patch_default_type()
    streams.install()


def _patch_default_type() -> None:
    original = torch.set_default_tensor_type

    def set_default_tensor_type(t: Any) -> None:
        """As the original; a type of torch.cuda is a dtype and a device."""
        if isinstance(t, str) and t.startswith("torch.cuda."):
            t = getattr(torch.cuda, t.rpartition(".")[2])
        if hasattr(t, "legacy_dtype"):
            torch.set_default_dtype(t.legacy_dtype)
            torch.set_default_device("cuda")
        else:
            original(t)
            torch.set_default_device(None)

    torch.set_default_tensor_type = set_default_tensor_type
