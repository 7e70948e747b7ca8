"""Overlaps of boxes at any angle and non-maximum suppression by them, and the order of vertices of an intersection.

The polygon in which two boxes overlap comes from where their edges cross and from the corners of one within the other,
put in order by their angle. Pairs whose circles do not meet are left out; the others go in pieces of 2 ** 15 pairs,
some 60 MiB. The angle of a rectangle here (x, y, width, height, angle) goes from x to y, in radians.
"""

from __future__ import annotations

from typing import Any

import torch

from transplt.helper.kernels.points import as_float32

__all__ = [
    "box_iou_rotated", "box_iou_rotated_into", "boxes_aligned_iou_bev_cpu", "boxes_aligned_overlap_bev_gpu",
    "boxes_iou_bev_gpu", "boxes_overlap_bev_gpu", "iou3d_nms3d_forward", "iou3d_nms3d_normal_forward", "nms_gpu",
    "nms_normal_gpu",
    "nms_rotated", "nms_rotated_sorted", "points_in_polygons_forward", "sort_vertices_forward",
]  # fmt: skip


def corners_of(boxes: torch.Tensor) -> torch.Tensor:
    """The corners [P, 4, 2] of rectangles [P, 5], one after the other around it."""
    x, y, width, height, angle = boxes.unbind(-1)
    cosine, sine = angle.cos() / 2, angle.sin() / 2
    along, across = (cosine * width, sine * width), (-sine * height, cosine * height)
    signs = ((-1, -1), (1, -1), (1, 1), (-1, 1))
    return torch.stack(
        [torch.stack([x + one * along[0] + two * across[0], y + one * along[1] + two * across[1]], -1)
         for one, two in signs], 1
    )  # fmt: skip


def cross(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """The cross product of vectors [..., 2]: [...]."""
    return first[..., 0] * second[..., 1] - first[..., 1] * second[..., 0]


def are_within(corners: torch.Tensor, boxes: torch.Tensor, margin: float) -> torch.Tensor:
    """Which corners [P, K, 2] lie in rectangles [P, 5] that are larger by a margin on each side; borders count where
    there is none: bool [P, K].
    """
    over, up = (corners - boxes[:, None, :2]).unbind(-1)
    cosine, sine = boxes[:, None, 4].cos(), boxes[:, None, 4].sin()
    own_x, own_y = (over * cosine + up * sine).abs(), (up * cosine - over * sine).abs()
    half_x, half_y = boxes[:, None, 2] / 2, boxes[:, None, 3] / 2
    if margin > 0:
        return (own_x < half_x + margin) & (own_y < half_y + margin)
    return (own_x <= half_x * (1 + 1e-6)) & (own_y <= half_y * (1 + 1e-6))


def pair_overlaps(one: torch.Tensor, two: torch.Tensor, margin: float) -> torch.Tensor:
    """The area in which rectangles [P, 5] overlap, pair by pair: [P].

    margin: how far corners may be outside and count, and edges have to cross for real, as in the iou3d kernels; 0:
    edges and corners that touch count, as in detectron2 and mmcv.
    """
    middle = (one[:, :2] + two[:, :2]) / 2
    one = torch.cat([one[:, :2] - middle, one[:, 2:]], -1)
    two = torch.cat([two[:, :2] - middle, two[:, 2:]], -1)
    p, q = corners_of(one), corners_of(two)
    p0, q0 = p[:, :, None].expand(-1, 4, 4, 2), q[:, None].expand(-1, 4, 4, 2)
    p1, q1 = p.roll(-1, 1)[:, :, None].expand_as(p0), q.roll(-1, 1)[:, None].expand_as(q0)
    start, end = cross(q0 - p0, p1 - p0), cross(q1 - p0, p1 - p0)  # on which side of an edge the other's ends are
    mine, mine_end = cross(p0 - q0, q1 - q0), cross(p1 - q0, q1 - q0)
    if margin > 0:
        meet = (start * end < 0) & (mine * mine_end < 0)
    else:
        meet = (start * end <= 0) & (mine * mine_end <= 0) & ((end - start).abs() > 1e-14)
    share = start / torch.where(meet, start - end, torch.ones_like(start))
    points = torch.cat([
        (q0 + (q1 - q0) * share[..., None]).flatten(1, 2), torch.stack([q, p], 2).flatten(1, 2)
    ], 1)  # fmt: skip
    inner = torch.stack([are_within(q, one, margin), are_within(p, two, margin)], 2)
    valid = torch.cat([meet.flatten(1), inner.flatten(1)], 1)
    points = torch.where(valid[..., None], points, torch.zeros_like(points))
    center = points.sum(1, keepdim=True) / valid.sum(1).clamp(min=1)[:, None, None].to(points.dtype)
    away = points - center
    angle = torch.where(valid, torch.atan2(away[..., 1], away[..., 0]), torch.full_like(away[..., 0], 10.0))
    order = angle.sort(dim=1, stable=True).indices
    ordered = points.gather(1, order[..., None].expand_as(points))
    first = ordered[:, :1]
    rays = torch.where(valid.gather(1, order)[..., None], ordered - first, torch.zeros_like(ordered))
    return cross(rays[:, :-1], rays[:, 1:]).sum(1).abs() / 2


def overlaps_of(pairs: tuple[torch.Tensor, torch.Tensor], one: torch.Tensor, two: torch.Tensor, margin: float) -> Any:
    """The overlaps [P] of pairs of rectangles [N, 5] and [M, 5] that are given by their numbers, in pieces."""
    rows, columns = pairs
    pieces = (slice(k, k + 2**15) for k in range(0, len(rows), 2**15))
    found = [pair_overlaps(one[rows[piece]], two[columns[piece]], margin) for piece in pieces]
    return torch.cat(found) if found else one.new_zeros(0)


def all_overlaps(one: torch.Tensor, two: torch.Tensor, margin: float) -> torch.Tensor:
    """The overlaps [N, M] of rectangles [N, 5] and [M, 5]."""
    out = torch.zeros(len(one), len(two), dtype=one.dtype, device=one.device)
    if 0 in out.shape:
        return out
    reach = [(each[:, 2].square() + each[:, 3].square()).sqrt() / 2 + margin + 1e-3 for each in (one, two)]
    apart = (one[:, None, 0] - two[None, :, 0]).square() + (one[:, None, 1] - two[None, :, 1]).square()
    pairs = (apart <= (reach[0][:, None] + reach[1][None]).square()).nonzero(as_tuple=True)
    out[pairs] = overlaps_of(pairs, one, two, margin)
    return out


def lidar_rectangles(boxes: torch.Tensor) -> tuple[torch.Tensor, float]:
    """Boxes of the iou3d kernels as rectangles [N, 5], and the margin that the kernels allow corners.

    Five columns are x1, y1, x2, y2 and an angle from y to x (PointRCNN), seven are x, y, z, dx, dy, dz and an angle
    from x to y (OpenPCDet, mmcv).
    """
    if boxes.shape[-1] == 5:
        x1, y1, x2, y2, angle = boxes.unbind(-1)
        return torch.stack([(x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1, -angle], -1), 1e-5
    return torch.stack([boxes[..., k] for k in (0, 1, 3, 4, 6)], -1), 1e-2


def over_union(overlap: torch.Tensor, one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
    """The overlap over the union, of areas that fit it, as in the iou3d kernels."""
    return overlap / (one + two - overlap).clamp(min=1e-8)


def lidar_ious(boxes_a: torch.Tensor, boxes_b: torch.Tensor) -> torch.Tensor:
    """Overlap over union [N, M] of boxes of the iou3d kernels, seen from above."""
    (one, margin), (two, _) = lidar_rectangles(boxes_a), lidar_rectangles(boxes_b)
    areas = [each[:, 2] * each[:, 3] for each in (one, two)]
    return over_union(all_overlaps(one, two, margin), areas[0][:, None], areas[1][None])


def upright_ious(boxes_a: torch.Tensor, boxes_b: torch.Tensor) -> torch.Tensor:
    """As `lidar_ious`, whatever the angles."""
    one, two = lidar_rectangles(boxes_a)[0], lidar_rectangles(boxes_b)[0]
    sides = []
    for axis in (0, 1):
        low = [each[:, axis] - each[:, axis + 2] / 2 for each in (one, two)]
        high = [each[:, axis] + each[:, axis + 2] / 2 for each in (one, two)]
        side = torch.minimum(high[0][:, None], high[1][None]) - torch.maximum(low[0][:, None], low[1][None])
        sides.append(side.clamp(min=0))
    areas = [each[:, 2] * each[:, 3] for each in (one, two)]
    return over_union(sides[0] * sides[1], areas[0][:, None], areas[1][None])


def boxes_overlap_bev_gpu(boxes_a: torch.Tensor, boxes_b: torch.Tensor, ans_overlap: torch.Tensor) -> int:
    """The overlaps of boxes [N, 5 or 7] and [M, 5 or 7], seen from above, into [N, M], as in `iou3d_cuda` of PointRCNN
    (five columns), and in `iou3d_nms_cuda` of OpenPCDet and mmcv (seven); gives 1.
    """
    (one, margin), (two, _) = lidar_rectangles(boxes_a), lidar_rectangles(boxes_b)
    ans_overlap.copy_(all_overlaps(one, two, margin))
    return 1


def boxes_aligned_overlap_bev_gpu(boxes_a: torch.Tensor, boxes_b: torch.Tensor, ans_overlap: torch.Tensor) -> int:
    """As `boxes_overlap_bev_gpu` for pairs of boxes, both [N, 5 or 7], into [N, 1]; gives 1."""
    (one, margin), (two, _) = lidar_rectangles(boxes_a), lidar_rectangles(boxes_b)
    every = torch.arange(len(one), device=one.device)
    ans_overlap.copy_(overlaps_of((every, every), one, two, margin).view(ans_overlap.shape))
    return 1


def boxes_aligned_iou_bev_cpu(boxes_a: torch.Tensor, boxes_b: torch.Tensor, ans_iou: torch.Tensor) -> int:
    """As `boxes_iou_bev_gpu` for pairs of boxes, both [N, 5 or 7], into [N, 1]; gives 1."""
    overlap = torch.zeros(len(boxes_a), dtype=boxes_a.dtype, device=boxes_a.device)
    boxes_aligned_overlap_bev_gpu(boxes_a, boxes_b, overlap)
    areas = [each[:, 2] * each[:, 3] for each in (lidar_rectangles(boxes_a)[0], lidar_rectangles(boxes_b)[0])]
    ans_iou.copy_(over_union(overlap, *areas).view(ans_iou.shape))
    return 1


def boxes_iou_bev_gpu(boxes_a: torch.Tensor, boxes_b: torch.Tensor, ans_iou: torch.Tensor) -> int:
    """Overlap over union of boxes, into [N, M]; see `boxes_overlap_bev_gpu`. Gives 1."""
    ans_iou.copy_(lidar_ious(boxes_a, boxes_b))
    return 1


# --- suppression -----------------------------------------------------------------------------------------------------


def kept_of(boxes: torch.Tensor, threshold: float, ious: Any) -> torch.Tensor:
    """Numbers of the boxes [N, ...], best first, that no kept one before overlaps by more than a threshold: int64 [K]
    on the host. Holds N * N bits as bytes there; the boxes go in pieces of rows.
    """
    count, limit = len(boxes), as_float32(threshold)
    rows = max(1, 2**22 // max(1, count))
    tables = [(ious(boxes[k : k + rows], boxes) > limit).cpu() for k in range(0, count, rows)]
    gone, kept = torch.zeros(count, dtype=torch.bool), []
    for number in range(count):
        if not gone[number]:
            kept.append(number)
            gone |= tables[number // rows][number % rows]
    return torch.tensor(kept, dtype=torch.int64)


def keep_into(keep: torch.Tensor, kept: torch.Tensor) -> int:
    """Write what is kept to the front of a buffer [N], and say how many."""
    keep[: len(kept)] = kept.to(keep.device, keep.dtype)
    return len(kept)


def nms_gpu(boxes: torch.Tensor, keep: torch.Tensor, nms_overlap_thresh: float) -> int:
    """Suppression among boxes [N, 5 or 7], best first, by overlap over union seen from above; writes the numbers of
    those kept into keep int64 [N], and gives how many, as in `iou3d_cuda` and `iou3d_nms_cuda`.
    """
    return keep_into(keep, kept_of(boxes, nms_overlap_thresh, lidar_ious))


def nms_normal_gpu(boxes: torch.Tensor, keep: torch.Tensor, nms_overlap_thresh: float) -> int:
    """As `nms_gpu`, whatever the angles."""
    return keep_into(keep, kept_of(boxes, nms_overlap_thresh, upright_ious))


def iou3d_nms3d_forward(
    boxes: torch.Tensor, keep: torch.Tensor, num_out: torch.Tensor, nms_overlap_thresh: float
) -> None:
    """As `nms_gpu`; how many goes into num_out int64 [], as in mmcv."""
    num_out.fill_(nms_gpu(boxes, keep, nms_overlap_thresh))


def iou3d_nms3d_normal_forward(
    boxes: torch.Tensor, keep: torch.Tensor, num_out: torch.Tensor, nms_overlap_thresh: float
) -> None:
    """As `nms_normal_gpu`; how many goes into num_out int64 [], as in mmcv."""
    num_out.fill_(nms_normal_gpu(boxes, keep, nms_overlap_thresh))


# --- rotated boxes of images -----------------------------------------------------------------------------------------


def ratio(overlap: torch.Tensor, one: torch.Tensor, two: torch.Tensor, mode: int) -> torch.Tensor:
    """Overlap over union (mode 0) or over the area of the first (1); 0 where an area is next to nothing."""
    base = one + two - overlap if mode == 0 else one.expand_as(overlap)
    empty = (one < 1e-14) | (two < 1e-14)
    return torch.where(empty, torch.zeros_like(overlap), overlap / torch.where(empty, torch.ones_like(base), base))


def image_ious(boxes1: torch.Tensor, boxes2: torch.Tensor, mode: int = 0) -> torch.Tensor:
    """Overlap over union [N, M] of rectangles [N, 5] and [M, 5]; those of float16 are computed in float32."""
    one, two = boxes1[:, :5].float(), boxes2[:, :5].float()
    areas = [each[:, 2] * each[:, 3] for each in (one, two)]
    return ratio(all_overlaps(one, two, 0.0), areas[0][:, None], areas[1][None], mode)


def in_degrees(boxes: torch.Tensor) -> torch.Tensor:
    """Boxes of detectron2, whose angle is in degrees from y to x, as rectangles [N, 5]."""
    return torch.cat([boxes[:, :4].float(), boxes[:, 4:5].float() * -0.01745329251], -1)


def box_iou_rotated(boxes1: torch.Tensor, boxes2: torch.Tensor) -> torch.Tensor:
    """Overlap over union [N, M] of boxes [N, 5] and [M, 5] (x, y, width, height, degrees), as in detectron2."""
    return image_ious(in_degrees(boxes1), in_degrees(boxes2)).to(boxes1.dtype)


def box_iou_rotated_into(
    boxes1: torch.Tensor, boxes2: torch.Tensor, ious: torch.Tensor, mode_flag: int, aligned: bool
) -> None:
    """Overlap over union (mode_flag 0) or over the first area (1) of boxes [N, 5] and [M, 5] in radians, into [N * M],
    or of pairs (aligned) into [N], as `box_iou_rotated` of mmcv.
    """
    if not aligned:
        ious.copy_(image_ious(boxes1, boxes2, mode_flag).view(ious.shape))
        return
    one, two = boxes1.float(), boxes2.float()
    every = torch.arange(len(one), device=one.device)
    overlap = overlaps_of((every, every), one, two, 0.0)
    ious.copy_(ratio(overlap, one[:, 2] * one[:, 3], two[:, 2] * two[:, 3], mode_flag))


def nms_rotated(boxes: torch.Tensor, scores: torch.Tensor, iou_threshold: float) -> torch.Tensor:
    """Numbers of the boxes [N, 5] (degrees) kept, best first, int64, as in detectron2."""
    order = scores.sort(descending=True, stable=True).indices
    return order[kept_of(in_degrees(boxes)[order], iou_threshold, image_ious).to(order.device)]


def nms_rotated_sorted(
    dets: torch.Tensor, scores: torch.Tensor, order: torch.Tensor, dets_sorted: torch.Tensor, *rest: Any,
    labels: Any = None, iou_threshold: Any = None, multi_label: Any = 0,
) -> torch.Tensor:  # fmt: skip
    """Numbers of the boxes kept, int64, as `nms_rotated` of mmcv: dets_sorted [N, 5 or 6] in radians, best first, and
    order int64 [N], the number of each. `rest`: labels, the threshold and whether there are several labels; mmcv before
    2.0 gives no labels.
    """
    numbers = [each for each in rest if isinstance(each, (int, float))]
    iou_threshold = numbers[0] if iou_threshold is None else iou_threshold
    return order[kept_of(dets_sorted, iou_threshold, image_ious).to(order.device)]


def points_in_polygons_forward(points: torch.Tensor, polygons: torch.Tensor, output: torch.Tensor) -> None:
    """Whether points [N, 2] lie in polygons of four vertices [M, 8], 1 or 0, into [N, M], as in mmcv.

    Edges that a ray to the right meets are counted; the count ends at an edge that the point lies on, as there.
    """
    x, y = points[:, :1].float(), points[:, 1:2].float()
    crossed = torch.zeros(len(points), len(polygons), dtype=torch.bool, device=points.device)
    over = crossed.clone()
    for k in range(4):
        start, end = polygons[:, 2 * k : 2 * k + 2].float(), polygons[:, (2 * k + 6) % 8 : (2 * k + 6) % 8 + 2].float()
        (sx, sy), (tx, ty) = start.unbind(-1), end.unbind(-1)
        near = (y >= torch.minimum(sy, ty)) & (y <= torch.maximum(sy, ty)) & ~over
        corner = ((sx == x) & (sy == y)) | ((tx == x) & (ty == y))
        spans = ((sy < y) & (ty >= y)) | ((sy >= y) & (ty < y))
        at = sx + (y - sy) * (tx - sx) / torch.where(ty == sy, torch.ones_like(ty), ty - sy)
        over = over | (near & (corner | (spans & (at == x))))
        crossed = crossed ^ (near & ~over & spans & (at > x))
    output.copy_(crossed)


# --- vertices --------------------------------------------------------------------------------------------------------


def sort_vertices_forward(vertices: torch.Tensor, mask: torch.Tensor, num_valid: torch.Tensor) -> torch.Tensor:
    """The valid vertices of polygons about the origin in the order of their angle from 0 on, the first once more at the
    end, as in Rotated_IoU and mmcv: int32 [B, N, 9].

    vertices: [B, N, M, 2], M at least 9; mask: bool [B, N, M]; num_valid: int [B, N], at most 8. What is behind is the
    first invalid vertex from the eighth on. Of equal vertices the first is taken.
    """
    x, y = vertices.unbind(-1)
    square = x.abs() * x / (x * x + y * y + 1e-8)
    x1, y1, f1 = (each[..., :, None] for each in (x, y, square))
    x2, y2, f2 = (each[..., None, :] for each in (x, y, square))
    equal = ((x1 - x2).abs() < 1e-8) & ((y1 - y2).abs() < 1e-8)
    upper, lower = (y1 > 0) & (y2 > 0) & (f1 - f2 > 1e-8), (y1 < 0) & (y2 < 0) & (f1 - f2 < 1e-8)
    before = (((y1 > 0) & (y2 < 0)) | upper | lower) & ~equal
    number = torch.arange(x.shape[-1], device=x.device)
    usable = mask & (y != 0)  # a vertex at y = 0 is never before another one
    repeated = (equal & usable[..., :, None] & (number[:, None] < number[None])).any(-2)
    single = usable & ~repeated
    rank = (before & single[..., :, None]).sum(-2)
    counts = num_valid.long().clamp(max=8)[..., None]
    slots = torch.where(single & (rank < counts), rank, torch.full_like(rank, 9))
    taken = torch.zeros(*x.shape[:2], 10, dtype=torch.int32, device=x.device)
    taken = taken.scatter(-1, slots.clamp(max=9), number.to(torch.int32).expand_as(slots))[..., :9]
    pad = 8 + (~mask[..., 8:]).to(torch.float32).argmax(-1, keepdim=True)
    place = torch.arange(9, device=x.device)
    same = (counts == 8) & ((taken[..., :4, None] == taken[..., None, 4:8]).sum((-1, -2))[..., None] == 4)
    ends = torch.where(same, torch.full_like(counts, 4), counts)  # two boxes that are the same
    taken = torch.where(place == ends, taken[..., :1], taken)
    return torch.where((place > ends) | (counts < 3), pad.to(torch.int32), taken)
