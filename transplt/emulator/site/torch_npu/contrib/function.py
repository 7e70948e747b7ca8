"""torch_npu.contrib.function."""

from __future__ import annotations

from typing import Any

import torch
from npu_emulator import names as _names
from torch.nn import functional as F

__all__ = [
    "fuse_add_softmax_dropout",
    "matmul_transpose",
    "npu_bbox_coder_decode_xywh2xyxy",
    "npu_bbox_coder_encode_xyxy2xywh",
    "npu_fast_condition_index_put",
    "roll",
]


def matmul_transpose(tensor1: Any, tensor2: Any) -> Any:
    """tensor1 @ tensor2 transposed in its last two dimensions."""
    return tensor1 @ tensor2.transpose(-2, -1)


def fuse_add_softmax_dropout(
    training: bool, dropout: Any, attn_mask: Any, attn_scores: Any, attn_head_size: float, p: float = 0.5, dim: int = -1
) -> Any:
    """dropout(softmax(scores / sqrt(head size) + mask)); in evaluation the dropout module decides."""
    weights = F.softmax(attn_scores / attn_head_size**0.5 + attn_mask, dim)
    return F.dropout(weights, p) if training else dropout(weights)


def npu_fast_condition_index_put(x: Any, condition: Any, value: Any) -> Any:
    """x with `value` where the bool mask is True, as a new tensor."""
    if condition.dtype != torch.bool:
        raise TypeError(f"[emulated npu] npu_fast_condition_index_put: condition is bool, not {condition.dtype}")
    return torch.where(condition, torch.full_like(x, value), x)


def roll(x: Any, shifts: Any, dims: Any) -> Any:
    """torch.roll of two axes of a tensor with four, as torch_npu/contrib/function/roll.py takes it."""
    if x.dim() != 4:
        raise ValueError("Expected x.dim() == 4")
    if len(shifts) != 2:
        raise ValueError("Expected len(shifts) == 2")
    if len(dims) != 2:
        raise ValueError("Expected len(dims) == 2")
    return torch.roll(x, shifts, dims)


def _centre_size(boxes: Any) -> tuple[Any, Any]:
    return (boxes[..., 2:] + boxes[..., :2]) / 2, boxes[..., 2:] - boxes[..., :2]


def npu_bbox_coder_encode_xyxy2xywh(
    bboxes: Any,
    gt_bboxes: Any,
    means: Any = None,
    stds: Any = None,
    is_normalized: bool = False,
    normalized_scale: float = 10000.0,
) -> Any:
    """Offsets (dx, dy, dw, dh) from boxes to targets, both (n, 4) as corners: (offset - means) / stds."""
    centre, size = _centre_size(bboxes.float())
    goal_centre, goal_size = _centre_size(gt_bboxes.float())
    deltas = torch.cat([(goal_centre - centre) / size, torch.log(goal_size / size)], -1)
    mean, std = deltas.new_tensor(means or [0.0] * 4), deltas.new_tensor(stds or [1.0] * 4)
    return (deltas - mean) / std


def npu_bbox_coder_decode_xywh2xyxy(
    bboxes: Any,
    pred_bboxes: Any,
    means: Any = None,
    stds: Any = None,
    max_shape: Any = None,
    wh_ratio_clip: float = 16 / 1000,
) -> Any:
    """Corners from boxes (n, 4) and offsets: the inverse of the encoder, clipped to `max_shape` (height, width)."""
    import math

    deltas = pred_bboxes.float() * pred_bboxes.new_tensor(stds or [1.0] * 4) + pred_bboxes.new_tensor(
        means or [0.0] * 4
    )
    centre, size = _centre_size(bboxes.float())
    limit = abs(math.log(wh_ratio_clip))
    new_centre = centre + deltas[..., :2] * size
    new_size = size * deltas[..., 2:].clamp(-limit, limit).exp()
    corners = torch.cat([new_centre - new_size / 2, new_centre + new_size / 2], -1)
    if max_shape is not None:
        bound = corners.new_tensor([max_shape[1], max_shape[0]] * 2)
        corners = torch.minimum(corners.clamp(min=0), bound)
    return corners


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise _names.missing("torch_npu.contrib.function", name)
