"""CARAFE: maps made larger, each pixel a weighted sum of a window, with weights of its own."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.nn import functional

from transplt.helper.kernels.recompute import as_compiled, filled, widened

__all__ = ["carafe_backward", "carafe_forward", "carafe_naive_backward", "carafe_naive_forward"]


def _taps(
    features: torch.Tensor, masks: torch.Tensor, kernel_size: int, groups: int, factor: int
) -> tuple[torch.Tensor, torch.Tensor, Iterator[tuple[int, tuple[slice, slice]]]]:
    """The features with a border, [batch, groups, channels of a group, height + border, width + border], the masks as
    [batch, groups, taps, height, factor, width, factor], and for each tap its number and where it reads.
    """
    batch, channels, height, width = features.shape
    border = (kernel_size - 1) // 2
    framed = functional.pad(widened(features), [border] * 4).unflatten(1, (groups, channels // groups))
    weights = widened(masks).view(batch, groups, kernel_size * kernel_size, height, factor, width, factor)
    places = (
        (row * kernel_size + column, (slice(row, row + height), slice(column, column + width)))
        for row in range(kernel_size)
        for column in range(kernel_size)
    )
    return framed, weights, places


def _larger(features: torch.Tensor, masks: torch.Tensor, kernel_size: int, groups: int, factor: int) -> torch.Tensor:
    batch, channels, height, width = features.shape
    framed, weights, places = _taps(features, masks, kernel_size, groups, factor)
    found = framed.new_zeros(batch, groups, channels // groups, height, factor, width, factor)
    for tap, (rows, columns) in places:
        found += framed[:, :, :, rows, columns][:, :, :, :, None, :, None] * weights[:, :, None, tap]
    return found.view(batch, channels, height * factor, width * factor)


def _gradients_of_larger(
    grad: torch.Tensor, features: torch.Tensor, masks: torch.Tensor, kernel_size: int, groups: int, factor: int
) -> tuple[torch.Tensor, torch.Tensor]:
    batch, channels, height, width = features.shape
    framed, weights, places = _taps(features, masks, kernel_size, groups, factor)
    given = widened(grad).reshape(batch, groups, channels // groups, height, factor, width, factor)
    to_framed, to_weights = torch.zeros_like(framed), torch.zeros_like(weights)
    for tap, (rows, columns) in places:
        to_framed[:, :, :, rows, columns] += (given * weights[:, :, None, tap]).sum((4, 6))
        to_weights[:, :, tap] = (given * framed[:, :, :, rows, columns][:, :, :, :, None, :, None]).sum(2)
    border = (kernel_size - 1) // 2
    inner = to_framed.flatten(1, 2)[:, :, border : border + height, border : border + width]
    return inner.to(features.dtype), to_weights.view(masks.shape).to(masks.dtype)


@as_compiled
def carafe_naive_forward(
    features: torch.Tensor, masks: torch.Tensor, output: torch.Tensor, kernel_size: int, group_size: int,
    scale_factor: int,
) -> int:  # fmt: skip
    """Maps [batch, channels, height, width] larger by `scale_factor`, into `output`.

    `masks` [batch, group_size * kernel_size ** 2, height * scale_factor, width * scale_factor] weigh the window around
    each pixel that is read, 0 outside. One pass over `output` for each place of the kernel, and two more of its size.
    """
    output.copy_(_larger(features, masks, kernel_size, group_size, scale_factor))
    return 1


@as_compiled
def carafe_naive_backward(
    top_grad: torch.Tensor, features: torch.Tensor, masks: torch.Tensor, bottom_grad: torch.Tensor,
    mask_grad: torch.Tensor, kernel_size: int, group_size: int, scale_factor: int,
) -> int:  # fmt: skip
    """The gradients of `carafe_naive_forward`, added to `bottom_grad` and `mask_grad`."""
    found = _gradients_of_larger(top_grad, features, masks, kernel_size, group_size, scale_factor)
    bottom_grad.add_(found[0])
    mask_grad.add_(found[1])
    return 1


@as_compiled
def carafe_forward(
    features: torch.Tensor, masks: torch.Tensor, rfeatures: torch.Tensor, routput: torch.Tensor, rmasks: torch.Tensor,
    output: torch.Tensor, kernel_size: int, group_size: int, scale_factor: int,
) -> int:  # fmt: skip
    """`carafe_naive_forward`; `rfeatures` becomes the features with channels last, as the backward pass is given them.

    `routput`, `rmasks` (scratch of the kernel) stay as they are.
    """
    filled(rfeatures, features.permute(0, 2, 3, 1))
    output.copy_(_larger(features, masks, kernel_size, group_size, scale_factor))
    return 1


@as_compiled
def carafe_backward(
    top_grad: torch.Tensor, rfeatures: torch.Tensor, masks: torch.Tensor, rtop_grad: torch.Tensor,
    rbottom_grad_hs: torch.Tensor, rbottom_grad: torch.Tensor, rmask_grad: torch.Tensor, bottom_grad: torch.Tensor,
    mask_grad: torch.Tensor, kernel_size: int, group_size: int, scale_factor: int,
) -> int:  # fmt: skip
    """The gradients of `carafe_forward`, into `bottom_grad` and `mask_grad`; the other buffers stay as they are."""
    features = rfeatures.permute(0, 3, 1, 2)
    found = _gradients_of_larger(top_grad, features, masks, kernel_size, group_size, scale_factor)
    bottom_grad.copy_(found[0])
    mask_grad.copy_(found[1])
    return 1
