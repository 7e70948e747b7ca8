"""Boxes that overlap a better one: greedy, soft and matching suppression, and overlaps of boxes."""

from __future__ import annotations

from collections.abc import Callable

import torch

from transplt.helper.kernels.recompute import as_compiled, widened

__all__ = ["bbox_overlaps", "nms_by_score", "nms_match", "nms_of_pixels", "nms_of_rows", "soft_nms"]

#: So many boxes are compared with one another at once, and with all that are kept.
_NMS_BLOCK = 2048


def greedy_nms(
    count: int, device: torch.device, covers: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    """Which of `count` things, the best first, no better one that is kept covers: their numbers, ascending, int64.

    `covers(these, those)` takes numbers and gives a bool [these, those]. Things go in blocks; within one, who is kept
    follows from those before in as many rounds as the longest chain of covering has links, mostly below ten.
    """
    kept = torch.zeros(0, dtype=torch.int64, device=device)
    for start in range(0, count, _NMS_BLOCK):
        block = torch.arange(start, min(start + _NMS_BLOCK, count), device=device)
        if kept.numel():
            block = block[~covers(kept, block).any(0)]
        over = covers(block, block).triu(1).float()
        keep = torch.ones(block.shape[0], device=device)
        while True:
            after = ((keep @ over) == 0).float()
            if torch.equal(after, keep):
                break
            keep = after
        kept = torch.cat([kept, block[keep > 0]])
    return kept


def _pair(one: torch.Tensor, two: torch.Tensor, offset: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The common area of boxes [a, 4] and [b, 4], [a, b], and the areas of both, [a, 1] and [1, b]."""
    left, right = torch.maximum(one[:, None, 0], two[:, 0]), torch.minimum(one[:, None, 2], two[:, 2])
    top, bottom = torch.maximum(one[:, None, 1], two[:, 1]), torch.minimum(one[:, None, 3], two[:, 3])
    common = (right - left + offset).clamp(min=0) * (bottom - top + offset).clamp(min=0)
    areas = [(each[:, 2] - each[:, 0] + offset) * (each[:, 3] - each[:, 1] + offset) for each in (one, two)]
    return common, areas[0][:, None], areas[1][None]


def _kept(boxes: torch.Tensor, scores: torch.Tensor, threshold: float, offset: float, divide: bool) -> torch.Tensor:
    order = torch.sort(scores, descending=True, stable=True)[1]
    ordered = widened(boxes).index_select(0, order)

    def covers(these: torch.Tensor, those: torch.Tensor) -> torch.Tensor:
        common, area, other = _pair(ordered[these], ordered[those], offset)
        union = area + other - common
        return common / union > threshold if divide else common > threshold * union

    return order[greedy_nms(boxes.shape[0], boxes.device, covers)]


@as_compiled
def nms_by_score(boxes: torch.Tensor, scores: torch.Tensor, iou_threshold: float, offset: int = 0) -> torch.Tensor:
    """Numbers (int64) of the boxes [n, 4] (x1, y1, x2, y2) that no better one overlaps by more, the best first.

    mmcv's form; `offset` is 1 where x2 and y2 are the last pixels. Of equal scores the first comes first. Memory: the
    overlaps of 2,048 boxes with all that are kept.
    """
    return _kept(boxes, scores, iou_threshold, offset, False)


@as_compiled
def nms_of_pixels(dets: torch.Tensor, scores: torch.Tensor, threshold: float) -> torch.Tensor:
    """`nms_by_score` for boxes whose x2 and y2 are the last pixels, numbers ascending: maskrcnn-benchmark's form."""
    return _kept(dets, scores, threshold, 1, True).sort()[0]


@as_compiled
def nms_of_rows(dets: torch.Tensor, iou_thr: float) -> torch.Tensor:
    """`nms_of_pixels` for rows [n, 5] that end with the score: the form of mmdetection before mmcv had it."""
    return _kept(dets[:, :4], dets[:, 4], iou_thr, 1, True).sort()[0]


@as_compiled
def bbox_overlaps(
    bboxes1: torch.Tensor, bboxes2: torch.Tensor, ious: torch.Tensor, mode: int, aligned: bool, offset: int
) -> None:
    """Overlaps of boxes [a, 4] and [b, 4] into `ious`, [a, b] or, `aligned`, one a pair.

    `mode` 0: by the united area, 1: by that of the first; `offset` 1 where x2 and y2 are the last pixels.
    """
    one, two = widened(bboxes1), widened(bboxes2)
    if aligned:
        left, right = torch.maximum(one[:, 0], two[:, 0]), torch.minimum(one[:, 2], two[:, 2])
        top, bottom = torch.maximum(one[:, 1], two[:, 1]), torch.minimum(one[:, 3], two[:, 3])
        common = (right - left + offset).clamp(min=0) * (bottom - top + offset).clamp(min=0)
        area, other = ((each[:, 2] - each[:, 0] + offset) * (each[:, 3] - each[:, 1] + offset) for each in (one, two))
    else:
        common, area, other = _pair(one, two, offset)
    whole = area + other - common if mode == 0 else area.expand_as(common)
    ious.copy_((common / whole.clamp(min=float(offset))).view(ious.shape))


@as_compiled
def soft_nms(
    boxes: torch.Tensor, scores: torch.Tensor, dets: torch.Tensor, iou_threshold: float, sigma: float,
    min_score: float, method: int, offset: int,
) -> torch.Tensor:  # fmt: skip
    """Numbers (int64) of the boxes that are left, the best first; `dets` [n, 5] gets them with their new scores.

    Each box lowers those that it overlaps: `method` 0 to nothing (from `iou_threshold` on), 1 by the overlap, 2 by a
    bell of width `sigma`; what falls below `min_score` goes. On the CPU, as the compiled one; one pass a box.
    """
    if not boxes.numel():
        return torch.zeros(0, dtype=torch.int64)
    columns = torch.cat([boxes.cpu().float(), scores.cpu().float()[:, None]], 1)
    left = torch.arange(boxes.shape[0])
    count, done = boxes.shape[0], 0
    while done < count:
        best = done + int(columns[done:count, 4].argmax())
        swap = torch.tensor([done, best])
        columns[swap], left[swap] = columns[swap.flip(0)], left[swap.flip(0)]
        dets[done].copy_(columns[done])
        done += 1
        rest = columns[done:count]
        common, area, other = _pair(columns[done - 1 : done, :4], rest[:, :4], offset)
        overlap = (common / (area + other - common))[0]
        if method == 2:
            rest[:, 4] *= torch.exp(-(overlap * overlap) / sigma)
        elif method in (0, 1):
            rest[:, 4] *= torch.where(overlap >= iou_threshold, 1 - overlap if method else overlap * 0, 1.0)
        gone = (rest[:, 4] < min_score).tolist()
        for place in range(done, count) if any(gone) else ():
            while place < count and gone[place - done]:  # the last one takes its place
                count -= 1
                columns[place], left[place] = columns[count].clone(), left[count].clone()
                gone[place - done] = gone[count - done]
    return left[:count]


@as_compiled
def nms_match(dets: torch.Tensor, iou_threshold: float) -> list[list[int]]:
    """For each kept row of `dets` [n, 5], the best first: its number, and those that it covers, the best first."""
    boxes, scores = dets[:, :4].cpu(), dets[:, 4].cpu()
    order = torch.sort(scores, descending=True, stable=True)[1]
    common, area, other = _pair(boxes[order], boxes[order], 0)
    covers = (common / (area + other - common) >= iou_threshold).triu(1)
    free = torch.ones(len(order), dtype=torch.bool)
    found = []
    for place in range(len(order)):
        if free[place]:
            taken = covers[place] & free
            free &= ~taken
            found.append([int(order[place]), *order[taken].tolist()])
    return found
