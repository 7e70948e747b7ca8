"""Attention of Deformable DETR: sums of reads at places of several maps."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import torch
from torch.nn import functional

from transplt.helper.kernels.recompute import as_compiled, kernel_gradients, widened

__all__ = ["ms_deform_attn_backward", "ms_deform_attn_forward", "ms_deform_attn_into_backward"]

#: So many numbers are read at once (float32: 256 MB).
_ATTENTION_PIECE = 2**26


def _attended(
    value: torch.Tensor, shapes: torch.Tensor, starts: torch.Tensor, places: torch.Tensor, weights: torch.Tensor
) -> torch.Tensor:
    """[batch, queries, heads * width of a head], by reads of torch."""
    batch, _, heads, width = value.shape
    queries, points = places.shape[1], places.shape[4]
    found = value.new_zeros(batch * heads, width, queries)
    for level, ((high, wide), start) in enumerate(zip(shapes.tolist(), starts.tolist())):  # noqa: B905
        rows = value[:, start : start + high * wide]
        image = rows.permute(0, 2, 3, 1).reshape(batch * heads, width, high, wide)
        grid = 2 * places[:, :, :, level].transpose(1, 2).reshape(batch * heads, queries, points, 2) - 1
        read = functional.grid_sample(image, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
        factor = weights[:, :, :, level].transpose(1, 2).reshape(batch * heads, 1, queries, points)
        found = found + (read * factor).sum(-1)
    return found.view(batch, heads * width, queries).transpose(1, 2)


@functools.cache
def _driving_sdk() -> Any:
    """DrivingSDK, operators for Ascend, or None where it is not installed."""
    try:
        return importlib.import_module("mx_driving")
    except ImportError:
        return None


def _is_for_the_package(value: torch.Tensor, places: torch.Tensor) -> bool:
    """True where mx_driving is there and takes such tensors (DrivingSDK, multi_scale_deformable_attn.md)."""
    _, _, heads, width = value.shape
    levels, points = places.shape[3:5]
    return (
        value.device.type == "npu" and value.dtype in (torch.float32, torch.float16) and _driving_sdk() is not None
        and levels * points <= 64 and heads <= 8 and width <= 256 and width % 8 == 0
    )  # fmt: skip


def _attention(
    value: torch.Tensor, shapes: torch.Tensor, starts: torch.Tensor, places: torch.Tensor, weights: torch.Tensor
) -> torch.Tensor:
    if _is_for_the_package(value, places):
        return _driving_sdk().multi_scale_deformable_attn(value, shapes, starts, places, weights)
    return _attended(widened(value), shapes, starts, widened(places), widened(weights)).to(value.dtype)


def _queries_at_once(value: torch.Tensor, places: torch.Tensor) -> int:
    """How many queries keep the reads of one map within bounds."""
    each = int(value.shape[0] * value.shape[2] * value.shape[3] * places.shape[4])
    return max(1, _ATTENTION_PIECE // max(each, 1))


@as_compiled
def ms_deform_attn_forward(
    value: torch.Tensor, value_spatial_shapes: torch.Tensor, value_level_start_index: torch.Tensor,
    sampling_locations: torch.Tensor, attention_weights: torch.Tensor, im2col_step: int = 64,
) -> torch.Tensor:  # fmt: skip
    """Sums of weighted reads, [batch, queries, heads * width], of `value` [batch, pixels of all maps, heads, width].

    `value_spatial_shapes` [maps, 2] are height and width, `value_level_start_index` [maps] where a map begins,
    `sampling_locations` [batch, queries, heads, maps, points, 2] x and y from 0 to 1, `attention_weights` the same
    without the last. Bilinear, 0 outside. `im2col_step` is not looked at. On an NPU mx_driving computes it where it is
    installed and takes the sizes (64 reads a query, 8 heads, width a multiple of 8 up to 256, float32 or float16);
    else one grid_sample for each map, in pieces of queries (256 MB).
    """
    step = _queries_at_once(value, sampling_locations)
    found = [
        _attention(value, value_spatial_shapes, value_level_start_index, places, weights)
        for places, weights in zip(sampling_locations.split(step, 1), attention_weights.split(step, 1))  # noqa: B905
    ]
    return found[0].contiguous() if len(found) == 1 else torch.cat(found, 1)


@as_compiled
def ms_deform_attn_backward(
    value: torch.Tensor, value_spatial_shapes: torch.Tensor, value_level_start_index: torch.Tensor,
    sampling_locations: torch.Tensor, attention_weights: torch.Tensor, grad_output: torch.Tensor, im2col_step: int = 64,
) -> list[torch.Tensor]:  # fmt: skip
    """The gradients of `ms_deform_attn_forward`: of the values, the places and the weights."""
    step = _queries_at_once(value, sampling_locations)
    to_value = torch.zeros_like(value, dtype=widened(value).dtype)
    others: list[tuple[torch.Tensor, ...]] = []
    shapes, starts = value_spatial_shapes, value_level_start_index
    for places, weights, grad in zip(  # noqa: B905
        sampling_locations.split(step, 1), attention_weights.split(step, 1), grad_output.split(step, 1)
    ):
        first, *rest = kernel_gradients(
            lambda one, two, three: _attention(one, shapes, starts, two, three), (value, places, weights), grad
        )
        to_value += first
        others.append(tuple(rest))
    return [to_value.to(value.dtype), *(torch.cat(each, 1) for each in zip(*others))]  # noqa: B905


@as_compiled
def ms_deform_attn_into_backward(
    value: torch.Tensor, value_spatial_shapes: torch.Tensor, value_level_start_index: torch.Tensor,
    sampling_locations: torch.Tensor, attention_weights: torch.Tensor, grad_output: torch.Tensor,
    grad_value: torch.Tensor, grad_sampling_loc: torch.Tensor, grad_attn_weight: torch.Tensor, im2col_step: int = 64,
) -> None:  # fmt: skip
    """`ms_deform_attn_backward`, added to the three buffers, as mmcv calls it."""
    found = ms_deform_attn_backward(value, value_spatial_shapes, value_level_start_index, sampling_locations,
                                    attention_weights, grad_output)  # fmt: skip
    for buffer, grad in zip((grad_value, grad_sampling_loc, grad_attn_weight), found):  # noqa: B905
        buffer.add_(grad)
