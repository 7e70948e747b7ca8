"""Kernels that choose and move numbers: corner pooling, shifts in time, and columns of chosen pixels."""

from __future__ import annotations

import torch
from torch.nn import functional

from transplt.helper.kernels.recompute import as_compiled

__all__ = [
    "bottom_pool_backward", "bottom_pool_forward", "left_pool_backward", "left_pool_forward", "masked_col2im_forward",
    "masked_col2im_rows", "masked_im2col_forward", "masked_im2col_rows", "right_pool_backward", "right_pool_forward",
    "tin_shift_forward", "top_pool_backward", "top_pool_forward",
]  # fmt: skip


def _running_max(values: torch.Tensor, dim: int) -> torch.Tensor:
    """The largest number up to each place, in as many passes as the length has binary digits."""
    step = 1
    while step < values.shape[dim]:
        length = values.shape[dim] - step
        later = torch.maximum(values.narrow(dim, step, length), values.narrow(dim, 0, length))
        values = torch.cat([values.narrow(dim, 0, step), later], dim)
        step *= 2
    return values


def _pool(input: torch.Tensor, dim: int, back: bool) -> torch.Tensor:
    return _running_max(input.flip(dim), dim).flip(dim) if back else _running_max(input, dim)


def _pool_gradient(input: torch.Tensor, grad: torch.Tensor, dim: int, back: bool) -> torch.Tensor:
    """Each gradient goes to the first of the largest numbers on the way."""
    values = input.flip(dim) if back else input
    most = _running_max(values, dim)
    rise = torch.ones_like(values, dtype=torch.bool)
    length = values.shape[dim] - 1
    rise.narrow(dim, 1, length).copy_(most.narrow(dim, 1, length) > most.narrow(dim, 0, length))
    shape = [1] * input.dim()
    shape[dim] = -1
    place = torch.arange(length + 1, device=input.device, dtype=torch.int32).view(shape).expand_as(values)
    index = _running_max(torch.where(rise, place, 0), dim).long()
    found = torch.zeros_like(values).scatter_add_(dim, index, grad.flip(dim) if back else grad)
    return found.flip(dim) if back else found


@as_compiled
def bottom_pool_forward(input: torch.Tensor) -> torch.Tensor:
    """The largest number of [batch, channels, height, width] from the top down to each pixel."""
    return _pool(input, 2, False)


@as_compiled
def bottom_pool_backward(input: torch.Tensor, grad_output: torch.Tensor) -> torch.Tensor:
    """The gradient of `bottom_pool_forward`; of equal numbers, the first from the top gets it."""
    return _pool_gradient(input, grad_output, 2, False)


@as_compiled
def top_pool_forward(input: torch.Tensor) -> torch.Tensor:
    """The largest number of [batch, channels, height, width] from the bottom up to each pixel."""
    return _pool(input, 2, True)


@as_compiled
def top_pool_backward(input: torch.Tensor, grad_output: torch.Tensor) -> torch.Tensor:
    """The gradient of `top_pool_forward`; of equal numbers, the first from the bottom gets it."""
    return _pool_gradient(input, grad_output, 2, True)


@as_compiled
def right_pool_forward(input: torch.Tensor) -> torch.Tensor:
    """The largest number of [batch, channels, height, width] from the left to each pixel."""
    return _pool(input, 3, False)


@as_compiled
def right_pool_backward(input: torch.Tensor, grad_output: torch.Tensor) -> torch.Tensor:
    """The gradient of `right_pool_forward`; of equal numbers, the first from the left gets it."""
    return _pool_gradient(input, grad_output, 3, False)


@as_compiled
def left_pool_forward(input: torch.Tensor) -> torch.Tensor:
    """The largest number of [batch, channels, height, width] from the right to each pixel."""
    return _pool(input, 3, True)


@as_compiled
def left_pool_backward(input: torch.Tensor, grad_output: torch.Tensor) -> torch.Tensor:
    """The gradient of `left_pool_forward`; of equal numbers, the first from the right gets it."""
    return _pool_gradient(input, grad_output, 3, True)


@as_compiled
def tin_shift_forward(input: torch.Tensor, shift: torch.Tensor, output: torch.Tensor) -> None:
    """Frames of `input` [batch, time, channels, pixels] moved by `shift` [batch, groups of channels], into `output`.

    Where no frame comes to, `output` stays. mmcv's backward pass moves the gradients the same way, and is this too.
    """
    _, length, channels, _ = input.shape
    moved = shift.repeat_interleave(channels // shift.shape[1], 1).long()  # [batch, channels]
    source = torch.arange(length, device=input.device).view(1, -1, 1) - moved[:, None]
    there = ((source >= 0) & (source < length)).unsqueeze(3)
    read = input.gather(1, source.clamp(0, length - 1).unsqueeze(3).expand_as(input))
    output.copy_(torch.where(there, read, output))


@as_compiled
def masked_im2col_forward(
    im: torch.Tensor, mask_h_idx: torch.Tensor, mask_w_idx: torch.Tensor, col: torch.Tensor, kernel_h: int,
    kernel_w: int, pad_h: int, pad_w: int,
) -> None:  # fmt: skip
    """The windows of `im` [1, channels, height, width] around chosen pixels, 0 outside, into `col`.

    `col` [channels * kernel_h * kernel_w, pixels].
    """
    framed = functional.pad(im.flatten(0, 1), [pad_w, kernel_w, pad_h, kernel_h])
    rows = mask_h_idx.long() + torch.arange(kernel_h, device=im.device).view(-1, 1, 1)
    columns = mask_w_idx.long() + torch.arange(kernel_w, device=im.device).view(1, -1, 1)
    col.copy_(framed[:, rows, columns].reshape(col.shape))


@as_compiled
def masked_col2im_forward(
    col: torch.Tensor, mask_h_idx: torch.Tensor, mask_w_idx: torch.Tensor, im: torch.Tensor, height: int, width: int,
    channels: int,
) -> None:  # fmt: skip
    """`col` [channels, pixels] at chosen pixels of `im` [1, channels, height, width], which else stays."""
    im.view(channels, height * width)[:, mask_h_idx.long() * width + mask_w_idx.long()] = col.view(channels, -1)


@as_compiled
def masked_im2col_rows(
    data_im: torch.Tensor, mask_h_idx: torch.Tensor, mask_w_idx: torch.Tensor, kernel_h: int, kernel_w: int,
    pad_h: int, pad_w: int, data_col: torch.Tensor,
) -> int:  # fmt: skip
    """`masked_im2col_forward` with the arguments as mmdetection 1 has them."""
    masked_im2col_forward(data_im, mask_h_idx, mask_w_idx, data_col, kernel_h, kernel_w, pad_h, pad_w)
    return 1


@as_compiled
def masked_col2im_rows(
    data_col: torch.Tensor, mask_h_idx: torch.Tensor, mask_w_idx: torch.Tensor, height: int, width: int,
    channels: int, data_im: torch.Tensor,
) -> int:  # fmt: skip
    """`masked_col2im_forward` with the arguments as mmdetection 1 has them."""
    masked_col2im_forward(data_col, mask_h_idx, mask_w_idx, data_im, height, width, channels)
    return 1
