"""Which device this process emulates: an NPU, or a CUDA GPU, as the stand-in of `site_cuda` does.

PyTorch's CPU build leaves the dispatch key and the device type of CUDA free, so the same engine serves both.
"""

from __future__ import annotations

from npu_emulator import DEVICE

#: "npu" or "cuda": the type of the device.
KIND: str = DEVICE
#: The dispatch key whose kernels are ours, and what DLPack calls the device (kDLExtDev, kDLCUDA).
KEY, DLPACK = {"npu": ("PrivateUse1", 12), "cuda": ("CUDA", 2)}[KIND]
#: How messages begin.
EMULATED = f"[emulated {KIND}]"
