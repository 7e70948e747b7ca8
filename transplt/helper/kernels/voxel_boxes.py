"""Points in boxes, their features pooled by box, and by cell of a plane seen from above.

Tests of points against boxes go in pieces of at most 2 ** 24 pairs; the features that a pool gives are what the caller
holds anyway.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from transplt.helper.kernels.points import first_of, point_pieces
from transplt.helper.kernels.voxels import ranks_in_groups

__all__ = [
    "bev_pool_backward", "bev_pool_forward", "bev_pool_v2_backward", "bev_pool_v2_forward",
    "points_in_boxes_all_forward", "points_in_boxes_cpu_forward", "points_in_boxes_part_forward", "pts_in_boxes3d_cpu",
    "roiaware_pool3d_backward", "roiaware_pool3d_forward", "roipoint_pool3d_forward", "roipool3d_cpu",
    "roipool3d_forward", "voxel_pooling_inference_forward_wrapper", "voxel_pooling_train_forward_wrapper",
]  # fmt: skip


def in_boxes(boxes: torch.Tensor, points: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Which points [B, N, 3] lie in boxes [B, M, 7] (center in x and y, bottom in z, three sizes, angle about z): bool
    [B, M, N], and x and y in the box's own frame. Borders count in z only.
    """
    boxes, x, y, z = boxes[..., None], points[..., None, :, 0], points[..., None, :, 1], points[..., None, :, 2]
    near_z = (z - (boxes[..., 2, :] + boxes[..., 5, :] / 2)).abs() <= boxes[..., 5, :] / 2
    cosine, sine = (-boxes[..., 6, :]).cos(), (-boxes[..., 6, :]).sin()
    over, up = x - boxes[..., 0, :], y - boxes[..., 1, :]
    own_x, own_y = over * cosine - up * sine, over * sine + up * cosine
    return near_z & within(own_x, boxes[..., 3, :]) & within(own_y, boxes[..., 4, :]), own_x, own_y


def within(place: torch.Tensor, size: torch.Tensor) -> torch.Tensor:
    """True where a place lies in an interval about 0, without its ends."""
    return (place > -size / 2) & (place < size / 2)


def in_lidar_boxes(boxes: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
    """Which points [B, N, 3] lie in boxes [B, M, 7], bool [B, M, N]; see `in_boxes`."""
    return in_boxes(boxes, points)[0]


def in_camera_boxes(boxes: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
    """Which points [B, N, 3] lie in boxes [B, M, 7] of a camera (x, bottom y, z, height, width, length, angle about y),
    borders included, at most 10 from the center in x and z: bool [B, M, N].
    """
    boxes, x, y, z = boxes[..., None], points[..., None, :, 0], points[..., None, :, 1], points[..., None, :, 2]
    half = boxes[..., 3, :] / 2
    over, deep = x - boxes[..., 0, :], z - boxes[..., 2, :]
    near = (over.abs() <= 10) & ((y - (boxes[..., 1, :] - half)).abs() <= half) & (deep.abs() <= 10)
    cosine, sine = boxes[..., 6, :].cos(), boxes[..., 6, :].sin()
    own_x, own_z = over * cosine - deep * sine, over * sine + deep * cosine
    return near & (own_x.abs() <= boxes[..., 5, :] / 2) & (own_z.abs() <= boxes[..., 4, :] / 2)


def points_in_boxes_part_forward(
    boxes_tensor: torch.Tensor, pts_tensor: torch.Tensor, box_idx_of_points_tensor: torch.Tensor
) -> None:
    """The first of boxes [B, M, 7] that holds each of points [B, N, 3], into int32 [B, N], as in mmcv; points in none
    keep what the buffer holds. z of a box is its bottom.
    """
    if boxes_tensor.shape[1] == 0:
        return
    for piece in point_pieces(pts_tensor.shape[1], boxes_tensor.shape[0] * boxes_tensor.shape[1]):
        inside = in_boxes(boxes_tensor, pts_tensor[:, piece])[0].to(torch.float32)
        held = box_idx_of_points_tensor[:, piece]
        box_idx_of_points_tensor[:, piece] = torch.where(inside.amax(1) > 0, inside.argmax(1).to(held.dtype), held)


def points_in_boxes_all_forward(
    boxes_tensor: torch.Tensor, pts_tensor: torch.Tensor, box_idx_of_points_tensor: torch.Tensor
) -> None:
    """Write 1 into int32 [B, N, M] for each of boxes [B, M, 7] that holds a point of [B, N, 3], as in mmcv."""
    for piece in point_pieces(pts_tensor.shape[1], boxes_tensor.shape[0] * max(1, boxes_tensor.shape[1])):
        inside = in_boxes(boxes_tensor, pts_tensor[:, piece])[0].transpose(1, 2)
        held = box_idx_of_points_tensor[:, piece]
        box_idx_of_points_tensor[:, piece] = torch.where(inside, torch.ones_like(held), held)


def points_in_boxes_cpu_forward(
    boxes_tensor: torch.Tensor, pts_tensor: torch.Tensor, pts_indices_tensor: torch.Tensor
) -> None:
    """Whether boxes [M, 7] hold points [N, 3], 0 or 1, into int32 [M, N], as in mmcv."""
    pts_indices_tensor.copy_(in_boxes(boxes_tensor[None], pts_tensor[None])[0][0])


def pts_in_boxes3d_cpu(pts_flag: torch.Tensor, pts: torch.Tensor, boxes3d: torch.Tensor) -> int:
    """Whether boxes [M, 7] of a camera hold points [N, 3], 0 or 1, into int64 [M, N], as in PointRCNN; gives 1."""
    pts_flag.copy_(in_camera_boxes(boxes3d[None], pts[None])[0])
    return 1


def pooled_points(inside: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The first `count` points in each box, bool [B, M, N], taken again from the first where they are fewer: int64
    [B, M, count], and which boxes hold any, bool [B, M].
    """
    found, number = first_of(inside, count)
    again = torch.arange(count, device=inside.device) % number.clamp(1, max(1, count))[..., None]
    return found.gather(-1, again).clamp(max=max(0, inside.shape[-1] - 1)), number > 0


def pool_into(
    test: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], boxes: torch.Tensor, xyz: torch.Tensor,
    features: torch.Tensor, pooled: torch.Tensor, empty: torch.Tensor,
) -> None:  # fmt: skip
    """Write x, y, z and features [B, N, C] of the points in each of boxes [B, M, 7] into pooled [B, M, S, 3 + C]; 1
    into empty [B, M] where there are none.
    """
    batch = torch.arange(len(xyz), device=xyz.device)[:, None, None]
    for piece in point_pieces(boxes.shape[1], len(xyz) * xyz.shape[1]):
        inside, flags, held = test(boxes[:, piece], xyz), empty[:, piece], pooled[:, piece]
        empty[:, piece] = torch.where(inside.any(-1), flags, torch.ones_like(flags))
        if xyz.shape[1] and pooled.shape[2]:
            found, some = pooled_points(inside, pooled.shape[2])
            values = torch.cat([xyz[batch, found], features[batch, found]], -1).to(held.dtype)
            pooled[:, piece] = torch.where(some[..., None, None], values, held)


def roipoint_pool3d_forward(
    xyz: torch.Tensor, boxes3d: torch.Tensor, pts_feature: torch.Tensor, pooled_features: torch.Tensor,
    pooled_empty_flag: torch.Tensor,
) -> None:  # fmt: skip
    """The first S points of xyz [B, N, 3] in each of boxes [B, M, 7] with their features [B, N, C], into
    pooled_features [B, M, S, 3 + C], as in mmcv: taken again from the first where they are fewer. Boxes without any get
    1 in pooled_empty_flag int32 [B, M].
    """
    pool_into(in_lidar_boxes, boxes3d, xyz, pts_feature, pooled_features, pooled_empty_flag)


def roipool3d_forward(
    xyz: torch.Tensor, boxes3d: torch.Tensor, pts_feature: torch.Tensor, pooled_features: torch.Tensor,
    pooled_empty_flag: torch.Tensor,
) -> int:  # fmt: skip
    """`roipool3d_cuda.forward` of PointRCNN, which gives 1: as `roipoint_pool3d_forward`, for boxes of a camera."""
    pool_into(in_camera_boxes, boxes3d, xyz, pts_feature, pooled_features, pooled_empty_flag)
    return 1


def roipool3d_cpu(
    pts: torch.Tensor, boxes3d: torch.Tensor, pts_feature: torch.Tensor, pooled_pts: torch.Tensor,
    pooled_features: torch.Tensor, pooled_empty_flag: torch.Tensor,
) -> int:  # fmt: skip
    """`roipool3d_cpu` of PointRCNN, which gives 1: one cloud [N, 3], with x, y, z and features in buffers of their own,
    [M, S, 3] and [M, S, C]; pooled_empty_flag int64 [M] is 0 or 1.
    """
    pooled = torch.cat([pooled_pts, pooled_features], -1)[None]
    pooled_empty_flag.zero_()
    pool_into(in_camera_boxes, boxes3d[None], pts[None], pts_feature[None], pooled, pooled_empty_flag[None])
    pooled_pts.copy_(pooled[0, ..., :3])
    pooled_features.copy_(pooled[0, ..., 3:])
    return 1


def roiaware_pool3d_forward(
    rois: torch.Tensor, pts: torch.Tensor, pts_feature: torch.Tensor, argmax: torch.Tensor,
    pts_idx_of_voxels: torch.Tensor, pooled_features: torch.Tensor, pool_method: int,
) -> None:  # fmt: skip
    """The largest (pool_method 0) or mean (1) features of the points in each part of each box, as in mmcv.

    rois: [R, 7], z at the bottom; pts: [N, 3]; pts_feature: [N, C]; pooled_features: [R, X, Y, Z, C], stays where a
    part is empty; argmax: int32 of that shape, the first point with the largest value, -1 for none; pts_idx_of_voxels:
    int32 [R, X, Y, Z, P] from zeros, how many points a part holds, at most P - 1, and their indices.
    """
    parts, most = pooled_features.shape[1:4], pts_idx_of_voxels.shape[-1] - 1
    if pool_method == 0:
        argmax.fill_(-1)
    if 0 in (len(rois), len(pts), most):
        return
    boxes, points, keys = [], [], []
    for piece in point_pieces(len(rois), len(pts)):
        inside, own_x, own_y = in_boxes(rois[None, piece], pts[None])
        box, point = inside[0].nonzero(as_tuple=True)
        roi = rois[piece][box]
        own = [own_x[0][box, point] + roi[:, 3] / 2, own_y[0][box, point] + roi[:, 4] / 2, pts[point, 2] - roi[:, 2]]
        key = box + piece.start
        for place, size, count in zip(own, roi[:, 3:6].unbind(-1), parts, strict=True):
            key = key * count + (place / (size / count)).long().clamp(0, count - 1)
        boxes.append(box + piece.start)
        points.append(point)
        keys.append(key)
    point, key = torch.cat(points), torch.cat(keys)
    if len(key) == 0:
        return
    order, group, rank, starts = ranks_in_groups(key)
    kept = rank < most
    point, part = point[order][kept], key[order][kept]
    listed = pts_idx_of_voxels.view(-1, most + 1)
    listed[part, rank[kept] + 1] = point.to(listed.dtype)
    sizes = torch.diff(starts, append=starts.new_full((1,), len(key))).clamp(max=most)
    filled = key[order][starts]
    listed[filled, 0] = sizes.to(listed.dtype)
    pooled = pooled_features.view(-1, pooled_features.shape[-1])
    group = group[kept]
    held = pts_feature[point]
    if pool_method != 0:
        sums = pooled.new_zeros(len(starts), pooled.shape[1]).index_add_(0, group, held)
        pooled[filled] = sums / sizes[:, None].to(sums.dtype)
        return
    index = group[:, None].expand_as(held)
    least = torch.full((len(starts), pooled.shape[1]), -math.inf, device=pts.device)
    largest = least.scatter_reduce(0, index, held.float(), "amax")
    none = float(len(pts))
    places = torch.where(held.float() == largest[group], point[:, None].float(), torch.full_like(held.float(), none))
    firsts = torch.full_like(least, none).scatter_reduce(0, index, places, "amin")
    some = (firsts < none) & (largest > -math.inf)
    pooled[filled] = torch.where(some, largest.to(pooled.dtype), pooled[filled])
    argmax.view(-1, pooled.shape[1])[filled] = torch.where(some, firsts, -torch.ones_like(firsts)).to(argmax.dtype)


def roiaware_pool3d_backward(
    pts_idx_of_voxels: torch.Tensor, argmax: torch.Tensor, grad_out: torch.Tensor, grad_in: torch.Tensor,
    pool_method: int,
) -> None:  # fmt: skip
    """Add the gradient of `roiaware_pool3d_forward` to grad_in [N, C], as in mmcv; grad_out: [R, X, Y, Z, C]."""
    grad = grad_out.reshape(-1, grad_out.shape[-1])
    if grad_in.shape[0] == 0 or grad.numel() == 0:
        return
    if pool_method == 0:
        places = argmax.reshape(grad.shape).long()
        grad_in.scatter_add_(0, places.clamp(min=0), torch.where(places >= 0, grad, torch.zeros_like(grad)))
        return
    listed = pts_idx_of_voxels.reshape(-1, pts_idx_of_voxels.shape[-1])
    ranks = torch.arange(1, listed.shape[1], device=listed.device)
    part, rank = (ranks <= listed[:, :1]).nonzero(as_tuple=True)
    share = grad[part] / listed[part, 0][:, None].to(grad.dtype)
    grad_in.index_add_(0, listed[part, rank + 1].long(), share)


def voxel_pooling_train_forward_wrapper(
    batch_size: int, num_points: int, num_channels: int, num_voxel_x: Any, num_voxel_y: Any, num_voxel_z: Any,
    geom_xyz: torch.Tensor, input_features: torch.Tensor, output_features: torch.Tensor, pos_memo: torch.Tensor,
) -> int:  # fmt: skip
    """Add features [B, N, C] to the cells of a plane that geom_xyz int32 [B, N, 3] says, as in BEVDepth, which gives 1.

    output_features: [B, Y, X, C]; pos_memo: int32 [B, N, 3], gets sample, y, x of the points inside. Memory: a copy of
    the features of the points inside.
    """
    x, y, z = geom_xyz.reshape(batch_size * num_points, 3).long().unbind(-1)
    inside = (x >= 0) & (x < num_voxel_x) & (y >= 0) & (y < num_voxel_y) & (z >= 0) & (z < num_voxel_z)
    at = inside.nonzero()[:, 0]
    sample = torch.div(at, num_points, rounding_mode="floor")
    memo = pos_memo.reshape(-1, 3)
    memo[at] = torch.stack([sample, y[at], x[at]], -1).to(memo.dtype)
    if memo.data_ptr() != pos_memo.data_ptr():
        pos_memo.copy_(memo.reshape(pos_memo.shape))
    cell = (sample * int(num_voxel_y) + y[at]) * int(num_voxel_x) + x[at]
    sums = torch.zeros_like(output_features).reshape(-1, num_channels)
    sums.index_add_(0, cell, input_features.reshape(-1, num_channels)[at])
    output_features.add_(sums.reshape(output_features.shape))
    return 1


def voxel_pooling_inference_forward_wrapper(
    batch_size: int, num_cams: int, num_depth: int, num_height: int, num_width: int, num_channels: int,
    num_voxel_x: Any, num_voxel_y: Any, num_voxel_z: Any, geom_xyz: torch.Tensor, depth_features: torch.Tensor,
    context_features: torch.Tensor, output_features: torch.Tensor,
) -> int:  # fmt: skip
    """As `voxel_pooling_train_forward_wrapper` for products of depth [B * cameras, D, H, W] and context
    [B * cameras, C, H, W], as in BEVDepth, which gives 1.
    """
    shape = (batch_size * num_cams, num_depth, num_height, num_width, num_channels)
    depth = depth_features.reshape(shape[:-1])[..., None]
    context = context_features.reshape(shape[0], num_channels, num_height, num_width).permute(0, 2, 3, 1)[:, None]
    count = num_cams * num_depth * num_height * num_width
    memo = torch.zeros(batch_size, count, 3, dtype=torch.int32, device=geom_xyz.device)
    return voxel_pooling_train_forward_wrapper(
        batch_size, count, num_channels, num_voxel_x, num_voxel_y, num_voxel_z, geom_xyz, depth * context,
        output_features, memo,
    )  # fmt: skip


def bev_pool_forward(
    x: torch.Tensor, geom_feats: torch.Tensor, interval_lengths: torch.Tensor, interval_starts: torch.Tensor, b: int,
    d: int, h: int, w: int,
) -> torch.Tensor:  # fmt: skip
    """The sums [b, d, h, w, C] of features x [N, C] over the cells geom_feats [N, 4] (h, w, d, b), as in BEVFusion.

    The intervals say which points share a cell, and are not needed.
    """
    cells = bev_cells(geom_feats, d, h, w)
    sums = torch.zeros(b, d, h, w, x.shape[1], dtype=x.dtype, device=x.device)
    sums.view(-1, x.shape[1]).index_add_(0, cells, x)
    return sums


def bev_pool_backward(
    out_grad: torch.Tensor, geom_feats: torch.Tensor, interval_lengths: torch.Tensor, interval_starts: torch.Tensor,
    b: int, d: int, h: int, w: int,
) -> torch.Tensor:  # fmt: skip
    """The gradient [N, C] of the features of `bev_pool_forward`; out_grad: [b, d, h, w, C]."""
    return out_grad.reshape(b * d * h * w, -1)[bev_cells(geom_feats, d, h, w)]


def bev_cells(geom_feats: torch.Tensor, d: int, h: int, w: int) -> torch.Tensor:
    """Flat places int64 [N] in [b, d, h, w] of cells [N, 4] (h, w, d, b)."""
    at_h, at_w, at_d, at_b = geom_feats.long().unbind(-1)
    return ((at_b * d + at_d) * h + at_h) * w + at_w


def bev_pool_v2_forward(
    depth: torch.Tensor, feat: torch.Tensor, out: torch.Tensor, ranks_depth: torch.Tensor, ranks_feat: torch.Tensor,
    ranks_bev: torch.Tensor, interval_lengths: torch.Tensor, interval_starts: torch.Tensor,
) -> None:  # fmt: skip
    """Add products of depth and feat [..., C], by their flat ranks [K], to out [..., C] at ranks_bev, as in BEVDet.

    The intervals say which ranks_bev are equal, and are not needed. Memory: [K, C].
    """
    channels = feat.shape[-1]
    products = depth.reshape(-1)[ranks_depth.long()][:, None] * feat.reshape(-1, channels)[ranks_feat.long()]
    sums = torch.zeros_like(out).reshape(-1, channels).index_add_(0, ranks_bev.long(), products)
    out.add_(sums.reshape(out.shape))


def bev_pool_v2_backward(
    out_grad: torch.Tensor, depth_grad: torch.Tensor, feat_grad: torch.Tensor, depth: torch.Tensor, feat: torch.Tensor,
    ranks_depth: torch.Tensor, ranks_feat: torch.Tensor, ranks_bev: torch.Tensor, interval_lengths: torch.Tensor,
    interval_starts: torch.Tensor,
) -> None:  # fmt: skip
    """Add the gradients of `bev_pool_v2_forward` to depth_grad and feat_grad, in the shapes of depth and feat."""
    channels = feat.shape[-1]
    grad = out_grad.reshape(-1, channels)[ranks_bev.long()]
    by_depth = (grad * feat.reshape(-1, channels)[ranks_feat.long()]).sum(-1)
    by_feat = grad * depth.reshape(-1)[ranks_depth.long()][:, None]
    sums = torch.zeros_like(depth).reshape(-1).index_add_(0, ranks_depth.long(), by_depth)
    depth_grad.add_(sums.reshape(depth_grad.shape))
    more = torch.zeros_like(feat).reshape(-1, channels).index_add_(0, ranks_feat.long(), by_feat)
    feat_grad.add_(more.reshape(feat_grad.shape))
