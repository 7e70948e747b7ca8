"""torch_npu.contrib: what of it is emulated, in plain PyTorch."""

from __future__ import annotations

from typing import Any

from npu_emulator import names as _names

from . import function, module
from .function import (
    fuse_add_softmax_dropout,
    matmul_transpose,
    npu_bbox_coder_decode_xywh2xyxy,
    npu_bbox_coder_encode_xyxy2xywh,
    npu_fast_condition_index_put,
    roll,
)
from .module import (
    BiLSTM,
    ChannelShuffle,
    FastBatchNorm1d,
    FastBatchNorm2d,
    FastBatchNorm3d,
    Focus,
    LabelSmoothingCrossEntropy,
    Mish,
    NpuCachedDropout,
    NpuDropPath,
    NpuFairseqDropout,
    Prefetcher,
    SiLU,
    Swish,
)

__all__ = [
    "BiLSTM", "ChannelShuffle", "FastBatchNorm1d", "FastBatchNorm2d", "FastBatchNorm3d", "Focus",
    "LabelSmoothingCrossEntropy", "Mish",
    "NpuCachedDropout", "NpuDropPath", "NpuFairseqDropout", "Prefetcher", "SiLU", "Swish", "function",
    "fuse_add_softmax_dropout",
    "matmul_transpose", "module", "npu_bbox_coder_decode_xywh2xyxy", "npu_bbox_coder_encode_xyxy2xywh",
    "npu_fast_condition_index_put", "roll",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise _names.missing("torch_npu.contrib", name)
