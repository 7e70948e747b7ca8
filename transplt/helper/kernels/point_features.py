"""Features of points by index, and their gradients: gather, group, interpolate, for batches of one size."""

from __future__ import annotations

import torch

from transplt.helper.kernels.point_sampling import furthest_points, threads_of_points
from transplt.helper.kernels.points import as_float32, squared_radius, three_nearest, within_radius
from transplt.helper.kernels.recompute import unshared

__all__ = [
    "ball_query", "furthest_point_sampling", "gather_points", "gather_points_grad", "group_points", "group_points_grad",
    "three_interpolate", "three_interpolate_grad", "three_nn",
]  # fmt: skip


def features_at(points: torch.Tensor, idx: torch.Tensor) -> torch.Tensor:
    """points [B, C, N] at idx [B, ...]: [B, C, ...]."""
    batch, channels = points.shape[:2]
    flat = idx.reshape(batch, 1, -1).long().expand(-1, channels, -1)
    return points.gather(2, flat).reshape(batch, channels, *idx.shape[1:])


def features_back(grad_out: torch.Tensor, idx: torch.Tensor, size: int) -> torch.Tensor:
    """The sums [B, C, size] of grad_out [B, C, ...] over equal idx [B, ...]."""
    batch, channels = grad_out.shape[:2]
    flat = idx.reshape(batch, 1, -1).long().expand(-1, channels, -1)
    sums = torch.zeros(batch, channels, size, dtype=grad_out.dtype, device=grad_out.device)
    return sums.scatter_add_(2, flat, grad_out.reshape(batch, channels, -1))


def interpolated(points: torch.Tensor, idx: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """points [B, C, M], idx and weight [B, N, 3]: the weighted sums [B, C, N]."""
    parts = [features_at(points, idx[..., each]) * weight[:, None, :, each] for each in range(3)]
    return parts[0] + parts[1] + parts[2]


def interpolated_back(grad_out: torch.Tensor, idx: torch.Tensor, weight: torch.Tensor, size: int) -> torch.Tensor:
    """The gradient [B, C, size] of the points of `interpolated` from grad_out [B, C, N]."""
    return features_back(grad_out[..., None] * weight[:, None], idx, size)


def furthest_point_sampling(points: torch.Tensor, nsamples: int) -> torch.Tensor:
    """Furthest points as `_ext.furthest_point_sampling` of Pointnet2_PyTorch and VoteNet: indices, int32 [B, nsamples].

    points: [B, N, 3]. Points whose squared distance from the origin is at most 0.001 are not taken (but for the first
    point, with which it starts), as there; where DrivingSDK is and no point is so near, its operator answers.
    """
    near = points.new_full(points.shape[:2], 1e10, dtype=torch.float32)
    skips = bool((points.float().square().sum(-1) <= as_float32(1e-3)).any()) if points.numel() else False
    return furthest_points(points, near, nsamples, threads_of_points(points.shape[1], 512), skips=skips)


def ball_query(new_xyz: torch.Tensor, xyz: torch.Tensor, radius: float, nsample: int) -> torch.Tensor:
    """The first points within a radius, as `_ext.ball_query` of Pointnet2_PyTorch and VoteNet: int32 [B, M, nsample].

    new_xyz: [B, M, 3], xyz: [B, N, 3]. Behind the last point the first is repeated; zeros where there is none.
    Memory: pieces of 64 MiB, where the kernel needs none.
    """
    idx = torch.zeros(*new_xyz.shape[:2], nsample, dtype=torch.int32, device=new_xyz.device)
    within_radius(new_xyz, xyz, 0.0, squared_radius(radius), nsample, idx)
    return idx


def gather_points(points: torch.Tensor, idx: torch.Tensor) -> torch.Tensor:
    """points [B, C, N] at idx int32 [B, M], as `_ext.gather_points`: [B, C, M]."""
    return unshared(features_at(points, idx))


def gather_points_grad(grad_out: torch.Tensor, idx: torch.Tensor, n: int) -> torch.Tensor:
    """The gradient of `gather_points`: grad_out [B, C, M], idx [B, M] to [B, C, n]."""
    return features_back(grad_out, idx, n)


def group_points(points: torch.Tensor, idx: torch.Tensor) -> torch.Tensor:
    """points [B, C, N] at idx int32 [B, M, nsample], as `_ext.group_points`: [B, C, M, nsample]."""
    return unshared(features_at(points, idx))


def group_points_grad(grad_out: torch.Tensor, idx: torch.Tensor, n: int) -> torch.Tensor:
    """The gradient of `group_points`: grad_out [B, C, M, nsample], idx [B, M, nsample] to [B, C, n]."""
    return features_back(grad_out, idx, n)


def three_nn(unknowns: torch.Tensor, knows: torch.Tensor) -> list[torch.Tensor]:
    """The three nearest, as `_ext.three_nn`: squared distances and int32 indices, both [B, N, 3].

    unknowns: [B, N, 3], knows: [B, M, 3]. inf and 0 where there are fewer than three.
    """
    return list(three_nearest(unknowns, knows))


def three_interpolate(points: torch.Tensor, idx: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Weighted sums of three, as `_ext.three_interpolate`: points [B, C, M], idx and weight [B, N, 3] to [B, C, N]."""
    return interpolated(points, idx, weight)


def three_interpolate_grad(grad_out: torch.Tensor, idx: torch.Tensor, weight: torch.Tensor, m: int) -> torch.Tensor:
    """The gradient of the points of `three_interpolate`: grad_out [B, C, N] to [B, C, m]."""
    return interpolated_back(grad_out, idx, weight, m)
