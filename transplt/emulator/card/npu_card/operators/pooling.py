"""Pooling: maxima with their places, means, and the way back."""

from __future__ import annotations

import math
from typing import Any

import torch

from . import operator

aten = torch.ops.aten

operator("MaxPool2dWithIndices")(aten.max_pool2d_with_indices.default)
operator("MaxPool3dWithArgmax")(aten.max_pool3d_with_indices.default)
operator("AdaptiveAvgPool2d")(aten._adaptive_avg_pool2d.default)
operator("AdaptiveMaxPool3d")(aten.adaptive_max_pool3d.default)


@operator("AdaptiveMaxPool2dBackward")
def adaptive_max_pool_2d_backward(grad: Any, input: Any, indices: Any) -> Any:
    """The CPU reads places of 64 bits alone; a card's may have 32."""
    return aten.adaptive_max_pool2d_backward(grad, input, indices.long())


@operator("AdaptiveMaxPool3dBackward")
def adaptive_max_pool_3d_backward(grad: Any, input: Any, indices: Any) -> Any:
    """See `adaptive_max_pool_2d_backward`."""
    return aten.adaptive_max_pool3d_backward(grad, input, indices.long())


@operator("MaxPool2dWithIndicesBackward")
def max_pool_2d_backward(
    grad: Any, input: Any, indices: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool
) -> Any:
    """`indices` as the forward gave them."""
    places = indices.long()
    return aten.max_pool2d_with_indices_backward(grad, input, kernel, stride, padding, dilation, ceil, places)


@operator("MaxPool3dWithArgmaxBackward")
def max_pool_3d_backward(
    grad: Any, input: Any, indices: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool
) -> Any:
    """`indices` as the forward gave them."""
    places = indices.long()
    return aten.max_pool3d_with_indices_backward(grad, input, kernel, stride, padding, dilation, ceil, places)


def _places_in(mask: Any, shape: Any) -> Any:
    """Where a mask of CANN's size keeps the places of the maxima of an output of `shape`, four bytes each; None where
    it has not the room, as for a kernel of one element."""
    count = math.prod(shape)
    whole = mask.reshape(-1).view(torch.int32)
    return whole[:count].view(shape) if count <= whole.numel() else None


@operator("MaxPool2dWithMask")
def max_pool_2d_masked(
    input: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool, outputs: Any
) -> Any:
    """Maxima, and a mask of their places, of the size that CANN gives it (aclnnMaxPool2dWithMask). What is in it only
    the way back reads: with CANN bits, here places."""
    maxima, indices = aten.max_pool2d_with_indices(input, kernel, stride, padding, dilation, ceil)
    places = _places_in(outputs[1], maxima.shape)
    if places is not None:
        places.copy_(indices)
    return maxima, None


@operator("MaxPool2dWithMaskBackward")
def max_pool_2d_masked_backward(
    grad: Any, input: Any, mask: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool
) -> Any:
    """The gradient goes where the mask of the forward says."""
    places = _places_in(mask, grad.shape)
    if places is None:
        places = aten.max_pool2d_with_indices(input, kernel, stride, padding, dilation, ceil)[1]
    return max_pool_2d_backward(grad, input, places, kernel, stride, padding, dilation, ceil)


@operator("AvgPool2d", "AvgPool3d")
def average_pool(
    input: Any, kernel: Any, stride: Any, padding: Any, ceil: bool, count_padding: bool, divisor: int, _cube: int = 0
) -> Any:
    """A divisor of 0 is none."""
    pool = aten.avg_pool2d if len(kernel) == 2 else aten.avg_pool3d
    return pool(input, kernel, stride, padding, ceil, count_padding, divisor or None)


@operator("AvgPool2dBackward", "AvgPool3dBackward")
def average_pool_backward(
    grad: Any, input: Any, kernel: Any, stride: Any, padding: Any, ceil: bool, count_padding: bool, divisor: int,
    _cube: int = 0,
) -> Any:  # fmt: skip
    """A divisor of 0 is none."""
    pool = aten.avg_pool2d_backward if len(kernel) == 2 else aten.avg_pool3d_backward
    return pool(grad, input, kernel, stride, padding, ceil, count_padding, divisor or None)
