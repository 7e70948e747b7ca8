"""Convolution whose kernel reads where offsets move it (ops-nn, conv/deformable_conv2d and deformable_offsets)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional

from . import operator
from .gradients import gradients

aten = torch.ops.aten
#: The window of a deformed image: kernel, stride, padding before, dilation, each for rows and columns.
Window = tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[int]]


def deformed(images: Any, offsets: Any, window: Window, groups: int, weighted: bool) -> Any:
    """What each tap of the kernel reads for each element of the output, side by side: batch, channels, rows times
    taps, columns times taps. Channels of `offsets`: for each group of channels and tap the way to the right, then all
    the ways down, then the weights. What is read outside is 0."""
    kernel, stride, padding, dilation = window
    batch, channels, *size = images.shape
    output, taps = offsets.shape[2:], kernel[0] * kernel[1]
    parts = offsets.float().reshape(batch, -1, groups, *kernel, *output)
    places = []
    for axis in (1, 0):
        taken = torch.arange(kernel[axis], device="cpu") * dilation[axis] - padding[axis]
        steps = torch.arange(output[axis], device="cpu") * stride[axis]
        shape = [1, 1, 1, 1]
        shape[axis], shape[2 + axis] = kernel[axis], output[axis]
        at = parts[:, 1 - axis] + (taken[:, None] + steps).reshape(shape)
        places.append((2 * at + 1) / size[axis] - 1)
    grid = torch.stack(places, -1).reshape(batch * groups, taps * output[0], output[1], 2)
    wide = images.float().reshape(batch * groups, channels // groups, *size)
    found = functional.grid_sample(wide, grid, align_corners=False)
    found = found.reshape(batch, groups, -1, *kernel, *output)
    if weighted:
        found = found * parts[:, 2].unsqueeze(2)
    return found.permute(0, 1, 2, 5, 3, 6, 4).reshape(
        batch, channels, output[0] * kernel[0], output[1] * kernel[1]
    )


def _window(kernel: Any, stride: Any, padding: Any, dilation: Any) -> Window:
    """From CANN's numbers: strides and dilations of all four axes, padding above, below, left and right."""
    return kernel, stride[2:], padding[::2], dilation[2:]


@operator("DeformableConv2d")
def deformable_convolution(
    images: Any, weight: Any, offsets: Any, bias: Any, kernel: Any, stride: Any, padding: Any, dilation: Any,
    groups: int, deformable_groups: int, weighted: bool,
) -> Any:  # fmt: skip
    """The result, and what the kernel read."""
    read = deformed(images, offsets, _window(kernel, stride, padding, dilation), deformable_groups, weighted)
    bias = bias if bias is None else bias.float()
    result = aten.convolution(read, weight.float(), bias, kernel, [0, 0], [1, 1], False, [0, 0], groups)
    return result, read


@operator("DeformableConv2dBackward")
def deformable_convolution_backward(
    images: Any, grad: Any, read: Any, weight: Any, offsets: Any, kernel: Any, stride: Any, padding: Any,
    dilation: Any, groups: int, deformable_groups: int, weighted: bool,
) -> Any:  # fmt: skip
    """Gradients of images, weight, offsets and bias."""
    of_read, of_weight, of_bias = aten.convolution_backward(
        grad.float(), read.float(), weight.float(), [weight.shape[0]], kernel, [0, 0], [1, 1], False, [0, 0], groups,
        [True, True, True],
    )  # fmt: skip
    window = _window(kernel, stride, padding, dilation)
    of_images, of_offsets = deformed_backward(of_read, images, offsets, window, deformable_groups, weighted)
    return of_images, of_weight, of_offsets, of_bias


def deformed_backward(
    grad: Any, images: Any, offsets: Any, window: Window, groups: int, weighted: bool
) -> Sequence[Any]:
    """Gradients of images and offsets."""

    def forward(one: Any, other: Any) -> Any:
        return (deformed(one, other, window, groups, weighted),)

    found: Sequence[Any] = gradients(forward, [images.float(), offsets.float()], [grad.float()])
    return found
