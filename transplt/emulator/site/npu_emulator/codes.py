"""Diagnostic codes of what a run finds: those of the static check, so that one page explains both."""

from __future__ import annotations

from .limits import call
from .names import exists

AMP = "NPU103"  # a name of CUDA's mixed precision
NCCL_NAME = "NPU111"
DEFAULT_DEVICE = "NPU121"  # CUDA is the device where none is given
DEFAULT_TENSOR_TYPE = "NPU125"
PROFILER = "NPU130"
DEVICE = "NPU201"  # a device string
TYPE_STRING = "NPU205"  # a tensor type named in a string
METHOD = "NPU210"  # .cuda()
IS_CUDA = "NPU211"
ENVIRONMENT = "NPU220"  # a variable that only CUDA reads
BACKEND = "NPU301"  # nccl
NO_COUNTERPART = "NPU501"
NO_KERNEL = "NPU790"  # the chosen torch_npu has no kernel for an operator that ran

#: What a name of torch.cuda belongs to, by a word in it.
_FAMILIES = (
    (("amp",), AMP),
    (("memory", "cache", "MemPool", "Allocator", "mem_get_info", "caching_allocator"), "NPU104"),
    (("tream", "Event"), "NPU105"),
    (("seed", "rng", "random"), "NPU106"),
    (("graph", "Graph", "capturing"), "NPU107"),
    (("nvtx", "profiler"), "NPU108"),
    (("Tensor", "Storage"), "NPU109"),
)


def of_cuda_name(full: str) -> str:
    """The code for a use of `torch.cuda.X`."""
    rule = call(full)
    if rule is not None:
        return rule.code
    module, _, name = full.replace("torch.cuda", "torch_npu.npu", 1).rpartition(".")
    if not exists(module, name) and "nvtx" not in full and name not in ("CUDAGraph", "CUDAPluggableAllocator"):
        return NO_COUNTERPART
    return next((code for words, code in _FAMILIES if any(word in full for word in words)), "NPU101")
