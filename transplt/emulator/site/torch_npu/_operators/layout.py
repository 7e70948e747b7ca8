"""Formats, casts, views and other small operators."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

from ..npu._format import Format

__all__ = [
    "npu_bmmV2",
    "npu_broadcast",
    "npu_confusion_transpose",
    "npu_dtype_cast",
    "npu_dtype_cast_",
    "npu_format_cast",
    "npu_format_cast_",
    "npu_max",
    "npu_min",
    "npu_one_hot",
    "npu_pad",
    "npu_reshape",
    "npu_slice",
    "npu_transpose",
    "one_",
]


def get_npu_format(tensor: Any) -> Format:
    """The storage format: always ND here."""
    return Format.ND


def npu_format_cast(input: Any, acl_format: int, customize_dtype: Any = None) -> Any:
    """Storage formats change nothing here."""
    return input


def npu_format_cast_(input: Any, acl_format: Any) -> Any:
    return input


def npu_dtype_cast(input: Any, dtype: Any) -> Any:
    return input.to(dtype)


def npu_dtype_cast_(input: Any, src: Any) -> Any:
    return input.copy_(src)


def npu_confusion_transpose(input: Any, perm: Any, shape: Any, transpose_first: bool) -> Any:
    """Permute then reshape, or view then permute."""
    if transpose_first:
        return input.permute(*perm).reshape(shape)
    return input.view(shape).permute(*perm)


def npu_transpose(input: Any, perm: Any, require_contiguous: bool = True) -> Any:
    permuted = input.permute(*perm)
    return permuted.contiguous() if require_contiguous else permuted


def npu_reshape(input: Any, shape: Any, can_refresh: bool = False) -> Any:
    return input.reshape(shape)


def npu_broadcast(input: Any, size: Any) -> Any:
    return input.broadcast_to(size).clone()


def npu_slice(input: Any, offsets: Any, size: Any) -> Any:
    for dim, (start, length) in enumerate(zip(offsets, size, strict=True)):
        input = input.narrow(dim, start, length)
    return input


def npu_pad(input: Any, paddings: Any) -> Any:
    """Zeros around `input`; `paddings` holds (before, after) from the first dimension on."""
    pairs = [paddings[i : i + 2] for i in range(0, len(paddings), 2)]
    return F.pad(input, [n for pair in reversed(pairs) for n in pair])


def npu_one_hot(input: Any, num_classses: int = -1, depth: int = 1, on_value: float = 1, off_value: float = 0) -> Any:
    """float32 rows of `depth` values: `on_value` at the class, `off_value` elsewhere."""
    classes = torch.arange(max(num_classses, depth), device=input.device)
    return torch.where(input.unsqueeze(-1) == classes, float(on_value), float(off_value))


def npu_bmmV2(input: Any, mat2: Any, output_sizes: Any) -> Any:
    """A batched product, viewed as `output_sizes` when that is not empty."""
    product = input @ mat2
    return product.view(output_sizes) if list(output_sizes) else product


def npu_max(input: Any, dim: int, keepdim: bool = False) -> tuple[Any, Any]:
    """(values, int32 indices)."""
    values, indices = input.max(dim, keepdim)
    return values, indices.to(torch.int32)


def npu_min(input: Any, dim: int, keepdim: bool = False) -> tuple[Any, Any]:
    values, indices = input.min(dim, keepdim)
    return values, indices.to(torch.int32)


def one_(input: Any) -> Any:
    return input.fill_(1)
