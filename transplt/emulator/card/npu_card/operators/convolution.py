"""Convolutions: plain, transposed, by channel, deformable, over time; and what they are made of (im2col)."""

from __future__ import annotations

from typing import Any

import torch

from . import operator

aten = torch.ops.aten


@operator("Convolution")
def convolution(
    input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, extra: Any,
    groups: int, _cube: int,
) -> Any:  # fmt: skip
    """`extra` is what a transposed one puts at the end of its output."""
    return aten.convolution(input, weight, bias, stride, padding, dilation, transposed, extra, groups)


@operator("ConvolutionBackward")
def convolution_backward(
    grad: Any, input: Any, weight: Any, bias_sizes: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    extra: Any, groups: int, wanted: Any, _cube: int,
) -> Any:  # fmt: skip
    """`bias_sizes` may be empty where there is no bias."""
    sizes = bias_sizes or [grad.shape[1]]
    return aten.convolution_backward(
        grad, input, weight, sizes, stride, padding, dilation, transposed, extra, groups, wanted
    )


@operator("ConvDepthwise2d")
def convolution_by_channel(
    input: Any, weight: Any, _kernel: Any, bias: Any, stride: Any, padding: Any, dilation: Any, _cube: int
) -> Any:
    """Each channel of the input has filters of its own."""
    return aten.convolution(input, weight, bias, stride, padding, dilation, False, [0, 0], input.shape[-3])


@operator("ConvTbc")
def convolution_over_time(input: Any, weight: Any, bias: Any, padding: int, _cube: int) -> Any:
    """Axes are time, batch, channels."""
    return aten.conv_tbc(input, weight, bias, padding)


@operator("ConvTbcBackward")
def convolution_over_time_backward(grad: Any, input: Any, weight: Any, bias: Any, padding: int, _cube: int) -> Any:
    """Gradients of input, weight and bias."""
    return aten.conv_tbc_backward(grad, input, weight, bias, padding)


operator("Im2col")(aten.im2col.default)
