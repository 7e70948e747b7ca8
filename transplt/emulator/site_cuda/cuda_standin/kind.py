"""What PyTorch calls the device: its CPU build leaves the dispatch key and the device type of CUDA free."""

from __future__ import annotations

#: The type of the device.
KIND = "cuda"
#: The dispatch key whose kernels are ours, and what DLPack calls the device (kDLCUDA).
KEY, DLPACK = "CUDA", 2
#: How messages begin.
EMULATED = "[emulated cuda]"
