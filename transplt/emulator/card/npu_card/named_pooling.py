"""Pooling of volumes, and images as columns, in the older interface of operators: cards before the 910B take it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .named_operators import named

_ATEN = torch.ops.aten


@named("MaxPool3D")
def max_pool_3d(input: Any, *, ksize: Any, strides: Any, pads: Any, dilation: Any, ceil_mode: int) -> Any:
    """Windows have five axes; paddings are before and behind each."""
    found = _ATEN.max_pool3d_with_indices(
        input.float(), ksize[2:], strides[2:], pads[::2], dilation[2:], bool(ceil_mode)
    )
    return found[0]


@named("MaxPool3DGrad")
def max_pool_3d_backward(input: Any, result: Any, grad: Any, *, ksize: Any, strides: Any, pads: Any) -> Any:
    """Whether sizes were rounded up shows in the gradient's; a dilation torch_npu does not pass, and so shows in the
    result alone."""
    for ceil in (False, True):
        window = ksize[2:], strides[2:], pads[::2], [1, 1, 1], ceil
        maxima, places = _ATEN.max_pool3d_with_indices(input.float(), *window)
        if torch.equal(maxima, result.float().reshape(grad.shape)):
            return _ATEN.max_pool3d_with_indices_backward(grad.float(), input.float(), *window, places)
    raise ValueError("the result is none of these windows without dilation")


@named("AvgPool3D")
def average_pool_3d(
    input: Any, *, ksize: Any, strides: Any, pads: Any, ceil_mode: bool, count_include_pad: bool,
    divisor_override: int = 0,
) -> Any:  # fmt: skip
    """Windows have three axes, or five; a divisor of 0 is none."""
    return _ATEN.avg_pool3d(
        input.float(), ksize[-3:], strides[-3:], pads[::2], ceil_mode, count_include_pad, divisor_override or None
    )


@named("AvgPool3DGrad")
def average_pool_3d_backward(
    _sizes: Any, grad: Any, *, ksize: Any, strides: Any, pads: Any, ceil_mode: bool, count_include_pad: bool,
    outputs: Sequence[Any], divisor_override: int = 0,
) -> Any:  # fmt: skip
    """The gradient of the input, whose numbers do not matter. Paddings of rows and columns stand before those of the
    first axis (op-plugin, AvgPool3dBackwardKernelNpu.cpp)."""
    input = torch.empty(outputs[0].shape, device="cpu")
    return _ATEN.avg_pool3d_backward(
        grad.float(), input, ksize[-3:], strides[-3:], [pads[4], pads[0], pads[2]], ceil_mode, count_include_pad,
        divisor_override or None,
    )  # fmt: skip


@named("Im2col")
def image_to_columns(input: Any, *, ksizes: Any, strides: Any, dilations: Any, pads: Any) -> Any:
    """Paddings are before and behind each axis."""
    return _ATEN.im2col(input, ksizes, dilations, pads[::2], strides)


@named("Col2im")
def columns_to_image(
    columns: Any, size: Any, *, kernel_size: Any, dilation: Any, padding: Any, stride: Any
) -> Any:
    """Sums of columns where they come from; the taps of the kernel have an axis of their own."""
    return _ATEN.col2im(columns.flatten(1, 2), size.tolist(), kernel_size, dilation, padding, stride)
