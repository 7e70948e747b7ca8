"""Boxes and bits of the older interface, after op-plugin's pages (named_operators.py says how they are called)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .named_operators import named


def _overlaps(one: Any, other: Any) -> Any:
    """Intersection over union of each box (x1, y1, x2, y2) of `one` with each of `other`."""
    one, other = one.float(), other.float()
    low = torch.maximum(one[:, None, :2], other[None, :, :2])
    high = torch.minimum(one[:, None, 2:], other[None, :, 2:])
    shared = (high - low).clamp(min=0).prod(-1)
    areas = [(each[:, 2:] - each[:, :2]).prod(-1) for each in (one, other)]
    union = areas[0][:, None] + areas[1][None, :] - shared
    return torch.where(union > 0, shared / union, 0.0)


@named("Iou")
def _iou(boxes: Any, truths: Any, *, mode: str = "iou") -> Any:
    if mode != "iou":
        raise NotImplementedError(f"npu_iou of mode {mode} is not emulated")
    return _overlaps(truths, boxes)


def _suppress(boxes: Any, threshold: float, most: int) -> list[int]:
    """The numbers of boxes, the best first, that overlap none before them too much."""
    overlaps = _overlaps(boxes, boxes)
    kept: list[int] = []
    for at in range(len(boxes)):
        if len(kept) < most and not any(overlaps[at, other] > threshold for other in kept):
            kept.append(at)
    return kept


@named("NonMaxSuppressionV4")
def _nms(
    boxes: Any, scores: Any, most: Any, threshold: Any, least: Any, *, outputs: Sequence[Any]
) -> tuple[Any, Any]:
    """Numbers of the kept boxes, by falling score, and how many there are; corners may come in any order."""
    order = torch.sort(scores.float(), descending=True, stable=True)[1]
    order = order[scores.float()[order] > float(least)]
    chosen = boxes.float()[order]
    corners = torch.cat((torch.minimum(chosen[:, :2], chosen[:, 2:]), torch.maximum(chosen[:, :2], chosen[:, 2:])), 1)
    kept = order[_suppress(corners, float(threshold), int(most))]
    found = torch.zeros(outputs[0].shape, device="cpu")
    found[: len(kept)] = kept.float()
    return found, torch.tensor(len(kept), device="cpu")


@named("NMSWithMask")
def _nms_with_mask(boxes: Any, *, iou_threshold: float) -> tuple[Any, Any, Any]:
    """The boxes with their scores as they are, their numbers, and which are kept; the best come first."""
    kept = torch.zeros(len(boxes), device="cpu")
    kept[_suppress(boxes[:, :4], iou_threshold, len(boxes))] = 1
    return boxes[:, :5], torch.arange(len(boxes), device="cpu"), kept


def _middle(boxes: Any) -> tuple[Any, Any]:
    """Middles and sizes of boxes, whose corners are numbers of pixels: both belong to it."""
    return (boxes[:, :2] + boxes[:, 2:]) * 0.5, boxes[:, 2:] - boxes[:, :2] + 1


@named("BoundingBoxEncode")
def _encode(anchors: Any, truths: Any, *, means: Sequence[float], stds: Sequence[float]) -> Any:
    """How far to move an anchor, in its sizes, and how much to stretch it, by logarithm."""
    (from_middle, from_size), (middle, size) = _middle(anchors.float()), _middle(truths.float())
    moves = torch.cat(((middle - from_middle) / from_size, torch.log(size / from_size)), 1)
    return (moves - torch.tensor(means, device="cpu")) / torch.tensor(stds, device="cpu")


@named("BoundingBoxDecode")
def _decode(
    boxes: Any, moves: Any, *, means: Sequence[float], stds: Sequence[float], max_shape: Sequence[int],
    wh_ratio_clip: float,
) -> Any:  # fmt: skip
    """Anchors moved and stretched within an image of `max_shape` (height, width)."""
    moves = moves.float() * torch.tensor(stds, device="cpu") + torch.tensor(means, device="cpu")
    most = abs(torch.log(torch.tensor(wh_ratio_clip, device="cpu")).item())
    middle, size = _middle(boxes.float())
    middle, size = middle + moves[:, :2] * size, size * moves[:, 2:].clamp(-most, most).exp()
    corners = torch.cat((middle - size * 0.5 + 0.5, middle + size * 0.5 - 0.5), 1)
    height, width = max_shape
    return corners.clamp(min=0).minimum(torch.tensor([width - 1, height - 1] * 2, device="cpu"))


@named("SignBitsPack")
def _pack_signs(x: Any, *, size: int) -> Any:
    """Eight signs a byte, the lowest bit first; below zero is 0, and so is what fills the last byte."""
    bits = (x.reshape(-1) >= 0).to(torch.uint8)
    bits = torch.nn.functional.pad(bits, (0, -len(bits) % 8)).reshape(-1, 8)
    return (bits << torch.arange(8, dtype=torch.uint8, device="cpu")).sum(1).to(torch.uint8).reshape(size, -1)


@named("SignBitsUnpack")
def _unpack_signs(x: Any, *, size: int) -> Any:
    bits = (x.reshape(-1, 1) >> torch.arange(8, dtype=torch.uint8, device="cpu")) & 1
    return (bits.float() * 2 - 1).reshape(size, -1)
