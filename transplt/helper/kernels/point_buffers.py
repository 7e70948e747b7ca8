"""Operators on points that write into buffers: `..._wrapper` of Pointnet2.PyTorch, `..._forward` of mmcv.

Sizes that are given (b, n, m and the like) are those of the tensors, and are not read but for the number of samples.
"""

from __future__ import annotations

from typing import Any

import torch

from transplt.helper.kernels.point_features import features_at, features_back, interpolated, interpolated_back
from transplt.helper.kernels.point_sampling import furthest_points, threads_of_points
from transplt.helper.kernels.points import nearest_points, squared_radius, three_nearest, within_radius

__all__ = [
    "ball_query_forward", "ball_query_wrapper", "furthest_point_sampling_forward",
    "furthest_point_sampling_with_dist_forward", "furthest_point_sampling_wrapper", "gather_points_backward",
    "gather_points_forward", "gather_points_grad_wrapper", "gather_points_wrapper", "group_points_backward",
    "group_points_forward", "group_points_grad_wrapper", "group_points_wrapper", "knn_forward",
    "three_interpolate_backward", "three_interpolate_forward", "three_interpolate_grad_wrapper",
    "three_interpolate_wrapper", "three_nn_forward", "three_nn_wrapper",
]  # fmt: skip


def furthest_point_sampling_wrapper(
    b: int, n: int, m: int, points: torch.Tensor, temp: torch.Tensor, output: torch.Tensor
) -> int:
    """Furthest points of [B, N, 3] into output int32 [B, m], as in `pointnet2_cuda`, which gives 1.

    temp: float32 [B, N], the squared distance to the nearest point taken, commonly 1e10; brought up to date, but where
    DrivingSDK's operator answers.
    """
    output.copy_(furthest_points(points, temp, m, threads_of_points(points.shape[1], 1024)))
    return 1


def ball_query_wrapper(
    b: int, n: int, m: int, radius: float, nsample: int, new_xyz: torch.Tensor, xyz: torch.Tensor, idx: torch.Tensor
) -> int:
    """The first points of xyz [B, N, 3] within a radius of new_xyz [B, M, 3] into idx int32 [B, M, nsample], as in
    `pointnet2_cuda`, which gives 1.

    Behind the last the first is repeated; rows without any keep what they held. Memory: pieces of 64 MiB.
    """
    within_radius(new_xyz, xyz, 0.0, squared_radius(radius), nsample, idx)
    return 1


def gather_points_wrapper(
    b: int, c: int, n: int, npoints: int, points: torch.Tensor, idx: torch.Tensor, out: torch.Tensor
) -> int:
    """points [B, C, N] at idx int32 [B, npoints] into out [B, C, npoints], as in `pointnet2_cuda`, which gives 1."""
    out.copy_(features_at(points, idx))
    return 1


def gather_points_grad_wrapper(
    b: int, c: int, n: int, npoints: int, grad_out: torch.Tensor, idx: torch.Tensor, grad_points: torch.Tensor
) -> int:
    """Add the gradient of `gather_points_wrapper` to grad_points [B, C, N]; grad_out: [B, C, npoints]. Gives 1."""
    grad_points.add_(features_back(grad_out, idx, n))
    return 1


def group_points_wrapper(
    b: int, c: int, n: int, npoints: int, nsample: int, points: torch.Tensor, idx: torch.Tensor, out: torch.Tensor
) -> int:
    """points [B, C, N] at idx int32 [B, npoints, nsample] into out [B, C, npoints, nsample], as in `pointnet2_cuda`,
    which gives 1.
    """
    out.copy_(features_at(points, idx))
    return 1


def group_points_grad_wrapper(
    b: int, c: int, n: int, npoints: int, nsample: int, grad_out: torch.Tensor, idx: torch.Tensor,
    grad_points: torch.Tensor,
) -> int:  # fmt: skip
    """Add the gradient of `group_points_wrapper` to grad_points [B, C, N]. Gives 1."""
    grad_points.add_(features_back(grad_out, idx, n))
    return 1


def three_nn_wrapper(
    b: int, n: int, m: int, unknown: torch.Tensor, known: torch.Tensor, dist2: torch.Tensor, idx: torch.Tensor
) -> None:
    """The three nearest of known [B, M, 3] for unknown [B, N, 3]: squared distances into dist2, indices into idx int32,
    both [B, N, 3], as in `pointnet2_cuda`. inf and 0 where there are fewer.
    """
    nearest, places = three_nearest(unknown, known)
    dist2.copy_(nearest)
    idx.copy_(places)


def three_interpolate_wrapper(
    b: int, c: int, m: int, n: int, points: torch.Tensor, idx: torch.Tensor, weight: torch.Tensor, out: torch.Tensor
) -> None:
    """Weighted sums of points [B, C, M] at idx with weight [B, N, 3] into out [B, C, N], as in `pointnet2_cuda`."""
    out.copy_(interpolated(points, idx, weight))


def three_interpolate_grad_wrapper(
    b: int, c: int, n: int, m: int, grad_out: torch.Tensor, idx: torch.Tensor, weight: torch.Tensor,
    grad_points: torch.Tensor,
) -> None:  # fmt: skip
    """Add the gradient of `three_interpolate_wrapper` to grad_points [B, C, M]; grad_out: [B, C, N]."""
    grad_points.add_(interpolated_back(grad_out, idx, weight, m))


def furthest_point_sampling_forward(
    points_tensor: torch.Tensor, temp_tensor: torch.Tensor, idx_tensor: torch.Tensor, b: int, n: int, m: int
) -> None:
    """Furthest points of [B, N, 3] into int32 [B, m], as in mmcv; see `furthest_point_sampling_wrapper`."""
    furthest_point_sampling_wrapper(b, n, m, points_tensor, temp_tensor, idx_tensor)


def furthest_point_sampling_with_dist_forward(
    points_tensor: torch.Tensor, temp_tensor: torch.Tensor, idx_tensor: torch.Tensor, b: int, n: int, m: int
) -> None:
    """Furthest points by distances [B, N, N] that are given, into int32 [B, m], as in mmcv."""
    threads = threads_of_points(points_tensor.shape[1], 1024)
    idx_tensor.copy_(furthest_points(points_tensor, temp_tensor, m, threads, given=True))


def ball_query_forward(
    new_xyz_tensor: torch.Tensor, xyz_tensor: torch.Tensor, idx_tensor: torch.Tensor, b: int, n: int, m: int,
    min_radius: float, max_radius: float, nsample: int,
) -> None:  # fmt: skip
    """The first points at a distance in [min_radius, max_radius), or at 0, into int32 [B, M, nsample], as in mmcv."""
    least, most = squared_radius(min_radius), squared_radius(max_radius)
    within_radius(new_xyz_tensor, xyz_tensor, least, most, nsample, idx_tensor)


def gather_points_forward(
    points_tensor: torch.Tensor, idx_tensor: torch.Tensor, out_tensor: torch.Tensor, b: int, c: int, n: int,
    npoints: int,
) -> None:  # fmt: skip
    """[B, C, N] at int32 [B, npoints] into [B, C, npoints], as in mmcv."""
    out_tensor.copy_(features_at(points_tensor, idx_tensor))


def gather_points_backward(
    grad_out_tensor: torch.Tensor, idx_tensor: torch.Tensor, grad_points_tensor: torch.Tensor, b: int, c: int, n: int,
    npoints: int,
) -> None:  # fmt: skip
    """Add the gradient of `gather_points_forward` to [B, C, N]."""
    grad_points_tensor.add_(features_back(grad_out_tensor, idx_tensor, n))


def group_points_forward(
    points_tensor: Any, idx_tensor: Any, out_tensor: Any, b: Any, c: Any, n: Any,
    npoints: Any, nsample: Any,
) -> None:  # fmt: skip
    """[B, C, N] at int32 [B, npoints, nsample] into [B, C, npoints, nsample], as in mmcv.

    mmcv before 1.4 takes (b, c, n, npoints, nsample, points, idx, out), by position: so does this.
    """
    if not isinstance(points_tensor, torch.Tensor):
        points_tensor, idx_tensor, out_tensor = n, npoints, nsample
    out_tensor.copy_(features_at(points_tensor, idx_tensor))


def group_points_backward(
    grad_out_tensor: Any, idx_tensor: Any, grad_points_tensor: Any, b: Any, c: Any, n: Any,
    npoints: Any, nsample: Any,
) -> None:  # fmt: skip
    """Add the gradient of `group_points_forward` to [B, C, N]; in the older order of arguments as well."""
    if not isinstance(grad_out_tensor, torch.Tensor):
        grad_out_tensor, idx_tensor, grad_points_tensor = n, npoints, nsample
    grad_points_tensor.add_(features_back(grad_out_tensor, idx_tensor, grad_points_tensor.shape[2]))


def knn_forward(
    xyz_tensor: torch.Tensor, new_xyz_tensor: torch.Tensor, idx_tensor: torch.Tensor, dist2_tensor: torch.Tensor,
    b: int, n: int, m: int, nsample: int,
) -> None:  # fmt: skip
    """The nsample nearest of xyz [B, N, 3] for [B, M, 3]: int32 indices and squared distances, both [B, M, nsample], as
    in mmcv. 1e10 and 0 where there are fewer; among equals another index may come first than there.
    """
    nearest, places = nearest_points(new_xyz_tensor, xyz_tensor, nsample)
    dist2_tensor.copy_(nearest)
    idx_tensor.copy_(places)


def three_nn_forward(
    unknown_tensor: torch.Tensor, known_tensor: torch.Tensor, dist2_tensor: torch.Tensor, idx_tensor: torch.Tensor,
    b: int, n: int, m: int,
) -> None:  # fmt: skip
    """The three nearest, as in mmcv; see `three_nn_wrapper`."""
    three_nn_wrapper(b, n, m, unknown_tensor, known_tensor, dist2_tensor, idx_tensor)


def three_interpolate_forward(
    points_tensor: torch.Tensor, idx_tensor: torch.Tensor, weight_tensor: torch.Tensor, out_tensor: torch.Tensor,
    b: int, c: int, m: int, n: int,
) -> None:  # fmt: skip
    """Weighted sums of three, as in mmcv; see `three_interpolate_wrapper`."""
    out_tensor.copy_(interpolated(points_tensor, idx_tensor, weight_tensor))


def three_interpolate_backward(
    grad_out_tensor: torch.Tensor, idx_tensor: torch.Tensor, weight_tensor: torch.Tensor,
    grad_points_tensor: torch.Tensor, b: int, c: int, n: int, m: int,
) -> None:  # fmt: skip
    """Add the gradient of `three_interpolate_forward` to [B, C, M]."""
    grad_points_tensor.add_(interpolated_back(grad_out_tensor, idx_tensor, weight_tensor, m))
