"""More ways to pool regions: mmdetection's first ones, borders of boxes, and regions whose bins move."""

from __future__ import annotations

import math

import torch

from transplt.helper.kernels.recompute import as_compiled, widened
from transplt.helper.kernels.roi import (
    RoiGrids,
    on_the_map,
    pixel_rows,
    roi_grids,
    roi_means,
    roi_means_gradient,
    roi_pool_into_backward,
    roi_pool_into_forward,
    roi_reads,
    spread_between,
)

__all__ = [
    "border_align_backward", "border_align_forward", "deform_roi_pool_backward", "deform_roi_pool_forward",
    "roi_align_rotated_backward", "roi_align_rotated_forward", "roi_align_rotated_into_backward",
    "roi_align_rotated_into_forward", "roi_align_rows_backward", "roi_align_rows_forward", "roi_pool_rows_backward",
    "roi_pool_rows_forward",
]  # fmt: skip


@as_compiled
def roi_align_rows_forward(
    features: torch.Tensor, rois: torch.Tensor, pooled_height: int, pooled_width: int, spatial_scale: float,
    sample_num: int, output: torch.Tensor,
) -> int:  # fmt: skip
    """RoIAlign into `output` [regions, channels, pooled_height, pooled_width], as mmdetection 1 has it.

    `rois` [regions, 5] are the number of the map, x1, y1, x2, y2, the last pixels included; an empty region gives 0,
    where the compiled one gives NaN with sample_num 0.
    """
    grids = roi_grids(rois, pooled_height, pooled_width, spatial_scale, sample_num, False, last_pixels=True)
    output.copy_(roi_means(features, grids))
    return 1


@as_compiled
def roi_align_rows_backward(
    top_grad: torch.Tensor, rois: torch.Tensor, pooled_height: int, pooled_width: int, spatial_scale: float,
    sample_num: int, bottom_grad: torch.Tensor,
) -> int:  # fmt: skip
    """The gradient of `roi_align_rows_forward`, added to `bottom_grad`."""
    grids = roi_grids(rois, pooled_height, pooled_width, spatial_scale, sample_num, False, last_pixels=True)
    batch, _, high, wide = bottom_grad.shape
    bottom_grad.add_(roi_means_gradient(top_grad, grids, batch, high, wide).to(bottom_grad.dtype))
    return 1


@as_compiled
def roi_pool_rows_forward(
    features: torch.Tensor, rois: torch.Tensor, pooled_height: int, pooled_width: int, spatial_scale: float,
    output: torch.Tensor, argmax: torch.Tensor,
) -> int:  # fmt: skip
    """`roi_pool_into_forward` with the arguments as mmdetection 1 has them."""
    roi_pool_into_forward(features, rois, output, argmax, pooled_height, pooled_width, spatial_scale)
    return 1


@as_compiled
def roi_pool_rows_backward(
    top_grad: torch.Tensor, rois: torch.Tensor, argmax: torch.Tensor, spatial_scale: float, bottom_grad: torch.Tensor
) -> int:
    """The gradient of `roi_pool_rows_forward`, added to `bottom_grad`."""
    roi_pool_into_backward(top_grad, rois, argmax, bottom_grad, top_grad.shape[2], top_grad.shape[3], spatial_scale)
    return 1


# --- turned regions --------------------------------------------------------------------------------------------------


def _turned(
    rois: torch.Tensor, high: int, wide: int, scale: float, sampling_ratio: int, aligned: bool, angle: torch.Tensor
) -> RoiGrids:
    """Regions [regions, 6] (map, x and y of the center, width, height, angle), turned by `angle` in radians."""
    given, shift = widened(rois), 0.5 if aligned else 0.0
    width, height = given[:, 3] * scale, given[:, 4] * scale
    if not aligned:
        width, height = width.clamp(min=1), height.clamp(min=1)
    turn = given[:, 1] * scale - shift, given[:, 2] * scale - shift, angle.cos(), angle.sin()
    return RoiGrids(given[:, 0], (-width / 2, -height / 2), (width, height), (high, wide), sampling_ratio, turn)


@as_compiled
def roi_align_rotated_forward(
    input: torch.Tensor, rois: torch.Tensor, spatial_scale: float, pooled_height: int, pooled_width: int,
    sampling_ratio: int,
) -> torch.Tensor:  # fmt: skip
    """RoIAlign of turned regions, [regions, channels, pooled_height, pooled_width], as Detectron2 has it.

    `rois` [regions, 6] are the number of the map, x and y of the center, width, height and the angle in degrees,
    against the clock; aligned.
    """
    angle = widened(rois)[:, 5] * (math.pi / 180)
    grids = _turned(rois, pooled_height, pooled_width, spatial_scale, sampling_ratio, True, angle)
    return roi_means(input, grids).to(input.dtype)


@as_compiled
def roi_align_rotated_backward(
    grad: torch.Tensor, rois: torch.Tensor, spatial_scale: float, pooled_height: int, pooled_width: int,
    batch_size: int, channels: int, height: int, width: int, sampling_ratio: int,
) -> torch.Tensor:  # fmt: skip
    """The gradient of `roi_align_rotated_forward` for its input, [batch_size, channels, height, width]."""
    angle = widened(rois)[:, 5] * (math.pi / 180)
    grids = _turned(rois, pooled_height, pooled_width, spatial_scale, sampling_ratio, True, angle)
    return roi_means_gradient(grad, grids, batch_size, height, width).to(grad.dtype).contiguous()


@as_compiled
def roi_align_rotated_into_forward(
    input: torch.Tensor, rois: torch.Tensor, output: torch.Tensor, pooled_height: int, pooled_width: int,
    spatial_scale: float, sampling_ratio: int, aligned: bool, clockwise: bool,
) -> None:  # fmt: skip
    """RoIAlign of turned regions into `output`, as mmcv has it: the angle in radians, with the clock if `clockwise`."""
    angle = widened(rois)[:, 5] * (-1 if clockwise else 1)
    grids = _turned(rois, pooled_height, pooled_width, spatial_scale, sampling_ratio, aligned, angle)
    output.copy_(roi_means(input, grids))


@as_compiled
def roi_align_rotated_into_backward(
    grad_output: torch.Tensor, rois: torch.Tensor, grad_input: torch.Tensor, pooled_height: int, pooled_width: int,
    spatial_scale: float, sampling_ratio: int, aligned: bool, clockwise: bool,
) -> None:  # fmt: skip
    """The gradient of `roi_align_rotated_into_forward`, added to `grad_input`."""
    angle = widened(rois)[:, 5] * (-1 if clockwise else 1)
    grids = _turned(rois, pooled_height, pooled_width, spatial_scale, sampling_ratio, aligned, angle)
    batch, _, high, wide = grad_input.shape
    grad_input.add_(roi_means_gradient(grad_output, grids, batch, high, wide).to(grad_input.dtype))


# --- the borders of boxes --------------------------------------------------------------------------------------------


def _border_places(boxes: torch.Tensor, steps: torch.Tensor, pool_size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """y and x of the steps `steps` [.., 4] or [.., 4, reads] along the top, left, bottom and right of boxes, whose
    corners are [.., 1] or [.., 1, 1] of the same shape.
    """
    extra = steps.dim() - boxes.dim()
    x1, y1, x2, y2 = (boxes[..., place].reshape(*boxes.shape[:-1], *[1] * (extra + 1)) for place in range(4))
    sides = torch.tensor([0, 1, 2, 3], device=boxes.device).view(4, *[1] * extra)
    along_x, away = sides % 2 == 0, sides >= 2
    length = torch.where(along_x, x2 - x1, y2 - y1) / pool_size * steps
    length = torch.where(away, -length, length)
    x, y = torch.where(away, x2, x1), torch.where(away, y2, y1)
    return y + torch.where(along_x, 0, length), x + torch.where(along_x, length, 0)


@as_compiled
def border_align_forward(
    input: torch.Tensor, boxes: torch.Tensor, output: torch.Tensor, argmax_idx: torch.Tensor, pool_size: int
) -> None:
    """The largest of pool_size + 1 reads along each side of boxes, into `output` [batch, channels, boxes, 4].

    `input` [batch, 4 * channels, height, width], a quarter each for top, left, bottom and right, `boxes` [batch, boxes,
    4] (x1, y1, x2, y2); `argmax_idx` gets the number of the read, the first of equal ones. Reads are RoIAlign's.
    """
    batch, channels, high, wide = input.shape
    channels //= 4
    count, reads = boxes.shape[1], pool_size + 1
    steps = torch.arange(reads, device=boxes.device).expand(batch, count, 4, reads)
    y, x = _border_places(widened(boxes), steps, pool_size)
    y, x = (each.transpose(1, 2).reshape(batch * 4, count, reads, 1) for each in (y, x))
    rows = pixel_rows(input.view(batch * 4, channels, high, wide))
    values = roi_reads(rows, torch.arange(batch * 4, device=input.device), y, x, high, wide)[:, :, :, 0]
    most = values.amax(2)
    order = torch.arange(reads, device=input.device).view(-1, 1)
    first = torch.where(values == most.unsqueeze(2), order, reads - 1).amin(2)
    output.copy_(most.view(batch, 4, count, channels).permute(0, 3, 2, 1))
    argmax_idx.copy_(first.view(batch, 4, count, channels).permute(0, 3, 2, 1))


@as_compiled
def border_align_backward(
    grad_output: torch.Tensor, boxes: torch.Tensor, argmax_idx: torch.Tensor, grad_input: torch.Tensor, pool_size: int
) -> None:
    """The gradient of `border_align_forward`, added to `grad_input`."""
    batch, channels, high, wide = grad_input.shape
    channels //= 4
    corners = widened(boxes).unsqueeze(1).expand(-1, channels, -1, -1)
    y, x = _border_places(corners, argmax_idx, pool_size)
    device = boxes.device
    plane = (torch.arange(batch, device=device).view(-1, 1, 1, 1) * 4 + torch.arange(4, device=device)) * channels
    plane = plane + torch.arange(channels, device=device).view(-1, 1, 1)
    found = spread_between(widened(grad_output), plane, y, x, batch * 4 * channels, high, wide)
    grad_input.add_(found.view(grad_input.shape).to(grad_input.dtype))


# --- bins that move --------------------------------------------------------------------------------------------------


def _moved(
    grids: RoiGrids, count: tuple[int, int], regions: torch.Tensor, offset: torch.Tensor, gamma: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """The places of the reads of some regions, with the offsets [regions, 2, high, wide] (x, y) of their bins."""
    y, x = grids.places(count, regions)
    if not offset.numel():
        return y, x
    width, height = grids.width[regions, None, None], grids.height[regions, None, None]
    moved = widened(offset)[regions]
    return y + (gamma * height * moved[:, 1]).unsqueeze(3), x + (gamma * width * moved[:, 0]).unsqueeze(3)


@as_compiled
def deform_roi_pool_forward(
    input: torch.Tensor, rois: torch.Tensor, offset: torch.Tensor, output: torch.Tensor, pooled_height: int,
    pooled_width: int, spatial_scale: float, sampling_ratio: int, gamma: float,
) -> None:  # fmt: skip
    """Means of regions, as RoIAlign (aligned), whose bins move by `offset`, into `output`.

    `offset` [regions, 2, pooled_height, pooled_width] (x, y) in parts of the region, times `gamma`; empty for none.
    """
    channels, high, wide = input.shape[1:]
    grids = roi_grids(rois, pooled_height, pooled_width, spatial_scale, sampling_ratio, True)
    rows = pixel_rows(input)
    found = rows.new_zeros(output.shape)
    for count, regions in grids.groups(channels):
        reads = roi_reads(rows, grids.map[regions], *_moved(grids, count, regions, offset, gamma), high, wide)
        found[regions] = (reads.sum(3) / max(math.prod(count), 1)).permute(0, 3, 1, 2)
    output.copy_(found)


@as_compiled
def deform_roi_pool_backward(
    grad_output: torch.Tensor, input: torch.Tensor, rois: torch.Tensor, offset: torch.Tensor, grad_input: torch.Tensor,
    grad_offset: torch.Tensor, pooled_height: int, pooled_width: int, spatial_scale: float, sampling_ratio: int,
    gamma: float,
) -> None:  # fmt: skip
    """The gradients of `deform_roi_pool_forward`, added to `grad_input` and `grad_offset`.

    Reads on the border of the map have the gradients of the compiled one, whose weights go on beyond it.
    """
    batch, channels, high, wide = input.shape
    grids = roi_grids(rois, pooled_height, pooled_width, spatial_scale, sampling_ratio, True)
    rows, found = pixel_rows(input), pixel_rows(torch.zeros_like(input))
    for count, regions in grids.groups(channels):
        y, x = _moved(grids, count, regions, offset, gamma)
        share = widened(grad_output)[regions].permute(0, 2, 3, 1).unsqueeze(3) / max(math.prod(count), 1)
        near_y, near_x, outside = on_the_map(y, x, high, wide)
        top, left = near_y.floor(), near_x.floor()
        bottom, right = (top + 1).clamp(max=high - 1), (left + 1).clamp(max=wide - 1)
        share = share.masked_fill(outside.unsqueeze(4), 0)
        first = grids.map[regions].view(-1, 1, 1, 1) * (high * wide)
        to_x, to_y = torch.zeros_like(y), torch.zeros_like(x)
        for row, part, grow_y, rest_y in (
            (top, 1 - (near_y - top), -1, bottom - y), (bottom, near_y - top, 1, y - top)
        ):  # fmt: skip
            for column, other, grow_x, rest_x in (
                (left, 1 - (near_x - left), -1, right - x), (right, near_x - left, 1, x - left)
            ):  # fmt: skip
                index = (first + row.long() * wide + column.long()).flatten()
                found.index_add_(0, index, (share * (part * other).unsqueeze(4)).flatten(0, 3))
                value = (rows.index_select(0, index).view(*y.shape, channels) * share).sum(4)
                to_x += value * grow_x * rest_y
                to_y += value * grow_y * rest_x
        if offset.numel():
            width, height = grids.width[regions, None, None], grids.height[regions, None, None]
            slope = torch.stack([gamma * width * to_x.sum(3), gamma * height * to_y.sum(3)], 1)
            grad_offset.index_add_(0, regions, slope.to(grad_offset.dtype))
    image = found.view(batch, high, wide, channels).permute(0, 3, 1, 2)
    grad_input.add_(image.to(grad_input.dtype))
