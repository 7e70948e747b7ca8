"""The trick that makes a CUDA tensor: a CPU tensor exported as a DLPack capsule, relabelled, and imported again.

The capsule's DLDevice is changed from kDLCPU to kDLExtDev, which PyTorch maps to PrivateUse1; for the stand-in to
kDLCUDA. Both tensors share their memory; neither is a Python subclass. The way back gives a CPU alias.
"""

from __future__ import annotations

import ctypes
from typing import Any

import torch

from .kind import DLPACK, EMULATED

_pointer_of: Any = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]
_head_at: Any = (ctypes.c_int32 * 4).from_address  # DLTensor: void* data, int32 device_type, int32 device_id
_CPU_TYPE = 1  # kDLCPU
_to_capsule, _from_capsule = torch._C._to_dlpack, torch._C._from_dlpack


def to_card(tensor: Any, index: int) -> Any:
    """A CUDA tensor over the memory of a strided CPU tensor; the device is `cuda:index`."""
    if tensor.layout is not torch.strided:
        raise NotImplementedError(f"{EMULATED} {tensor.layout} tensors are not emulated")
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()  # lazy bits do not survive the capsule
    if tensor.data_ptr() == 0 and tensor.numel():
        tensor = tensor.clone()  # a tensor without memory (ZeroTensor) must not be relabelled
    capsule = _to_capsule(tensor)
    head = _head_at(_pointer_of(capsule, b"dltensor"))
    head[2] = DLPACK
    head[3] = index
    return _from_capsule(capsule)


def to_cpu(tensor: Any) -> Any:
    """A CPU tensor over the memory of a CUDA tensor, with its lazy conj and neg bits."""
    capsule = _to_capsule(tensor)
    head = _head_at(_pointer_of(capsule, b"dltensor"))
    head[2] = _CPU_TYPE
    head[3] = 0
    alias = _from_capsule(capsule)
    if tensor.is_neg():
        alias = torch._neg_view(alias)
    if tensor.is_conj():
        alias = torch._conj(alias)
    return alias
