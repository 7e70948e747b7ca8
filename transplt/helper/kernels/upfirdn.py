"""Filters of StyleGAN: images spread by zeros, padded or cut, filtered and thinned out."""

from __future__ import annotations

import torch
from torch.nn import functional

from transplt.helper.kernels.recompute import as_compiled, widened

__all__ = ["upfirdn2d"]


@as_compiled
def upfirdn2d(
    input: torch.Tensor, kernel: torch.Tensor, up_x: int, up_y: int, down_x: int, down_y: int,
    pad_x0: int, pad_x1: int, pad_y0: int, pad_y1: int, flip: bool | None = None, gain: float = 1.0,
) -> torch.Tensor:  # fmt: skip
    """Put `up - 1` zeros after each pixel, pad (or cut, below 0), filter with `kernel`, and keep each `down`th pixel.

    In two forms, as public modules have it: without `flip`, `input` is [planes, height, width, minor] and the kernel is
    turned round (a convolution); with `flip`, a bool, it is [batch, channels, height, width], the kernel is turned
    round where flip is False, and the result times `gain`. Kernel [height, width]. 16-bit images go through float32.

    On an NPU float32 convolutions round to HF32 unless torch.npu.conv.allow_hf32 is False. Memory: the image with its
    zeros, once.
    """
    if flip is None:
        planes, height, width, minor = input.shape
        every = planes * minor
        images = input.permute(0, 3, 1, 2).reshape(*(1, every) if every else (0, 1), height, width)
        given = kernel.flip([0, 1])
    else:
        images = input
        given = (kernel if flip else kernel.flip([0, 1])) * gain
    images = _spread(widened(images), up_x, up_y)
    images = functional.pad(images, [max(pad_x0, 0), max(pad_x1, 0), max(pad_y0, 0), max(pad_y1, 0)])
    bottom, right = images.shape[2] - max(-pad_y1, 0), images.shape[3] - max(-pad_x1, 0)
    images = images[:, :, max(-pad_y0, 0) : bottom, max(-pad_x0, 0) : right]
    channels = images.shape[1]
    filters = given.to(images.dtype).expand(channels, 1, -1, -1)
    found = functional.conv2d(images, filters, stride=(down_y, down_x), groups=channels).to(input.dtype)
    if flip is None:
        return found.reshape(planes, minor, *found.shape[2:]).permute(0, 2, 3, 1).contiguous()
    return found


def _spread(images: torch.Tensor, up_x: int, up_y: int) -> torch.Tensor:
    if up_x == up_y == 1:
        return images
    batch, channels, height, width = images.shape
    found = functional.pad(images.reshape(batch, channels, height, 1, width, 1), [0, up_x - 1, 0, 0, 0, up_y - 1])
    return found.reshape(batch, channels, height * up_y, width * up_x)
