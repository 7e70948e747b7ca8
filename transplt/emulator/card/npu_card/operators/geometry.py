"""Grids, and regions of images."""

from __future__ import annotations

from typing import Any

import torch

from . import operator

aten = torch.ops.aten
#: Where a region ends, by `roi_end_mode`: one pixel further, or as it stands and all moved by half a pixel; but for the
#: third, a side has one pixel at least.
_ONE_MORE, _HALF_BEFORE, _HALF_BEFORE_AT_LEAST_ONE = 1, 2, 3


@operator("AffineGrid")
def affine_grid(theta: Any, size: Any, aligned: bool) -> Any:
    """Where each element of an output of `size` comes from."""
    return aten.affine_grid_generator(theta.float(), size, aligned)


def _weights(coordinates: Any, size: int) -> Any:
    """How much each line of a side of `size` (the last axis) counts at each coordinate; nothing outside."""
    outside = (coordinates < -1) | (coordinates > size)
    inside = coordinates.clamp(0, size - 1)
    below = inside.floor().clamp(max=max(size - 2, 0))
    share = inside - below
    lines = torch.arange(size, device="cpu")
    result = (lines == below[..., None]) * (1 - share[..., None]) + (lines == below[..., None] + 1) * share[..., None]
    return result.masked_fill(outside[..., None], 0)


def _region_weights(
    regions: Any, sizes: Any, scale: float, height: int, width: int, samples: int, end_mode: int
) -> list[tuple[int, Any, Any]]:
    """For each region the image it lies in, and the weights of rows and columns for each cell: the sampling is a
    product of both sides."""
    result = []
    for region in regions.float():
        corners = region[1:] * scale
        if end_mode == _ONE_MORE:
            corners[2:] += scale
        elif end_mode in (_HALF_BEFORE, _HALF_BEFORE_AT_LEAST_ONE):
            corners -= 0.5
        left, top, right, bottom = corners.unbind()
        long = torch.stack([right - left, bottom - top])
        if end_mode != _HALF_BEFORE:
            long = long.clamp(min=1)
        sides = []
        for start, length, cells, size in ((top, long[1], height, sizes[0]), (left, long[0], width, sizes[1])):
            taken = samples if samples > 0 else max(int(torch.ceil(length / cells)), 1)
            at = start + (torch.arange(cells * taken, device="cpu") + 0.5) * length / (cells * taken)
            sides.append(_weights(at, size).unflatten(0, (cells, taken)).mean(1))
        result.append((int(region[0]), *sides))
    return result


@operator("ROIAlign")
def region_align(
    input: Any, regions: Any, scale: float, height: int, width: int, samples: int, end_mode: int
) -> Any:
    """Means of samples in the cells of each region (image, left, top, right, bottom)."""
    parts = _region_weights(regions, input.shape[-2:], scale, height, width, samples, end_mode)
    found = [rows @ input[image].float() @ columns.T for image, rows, columns in parts]
    return torch.stack(found) if found else None


@operator("ROIAlignBackward")
def region_align_backward(
    grad: Any, regions: Any, shape: Any, width: int, height: int, scale: float, samples: int, end_mode: int
) -> Any:
    """The gradient of the images."""
    result = torch.zeros(shape, device="cpu")
    parts = _region_weights(regions, shape[-2:], scale, height, width, samples, end_mode)
    for part, (image, rows, columns) in zip(grad.float(), parts, strict=True):
        result[image] += rows.T @ part @ columns
    return result
