"""Operators on clouds of different sizes, one behind the other: by counts (OpenPCDet, mmcv) and by ends (pointops).

The counts and ends are read on the host, which waits for the card once a call; each cloud is then worked on by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch

from transplt.helper.kernels.point_sampling import furthest_points, threads_of_points
from transplt.helper.kernels.points import (
    first_of,
    nearest_points,
    point_pieces,
    squared_radius,
    three_nearest,
    within_radius,
)

__all__ = [
    "aggregation_backward_cuda", "aggregation_forward_cuda", "ball_query_wrapper_stack", "furthestsampling_cuda",
    "group_points_grad_wrapper_stack", "group_points_wrapper_stack", "grouping_backward_cuda", "grouping_forward_cuda",
    "interpolation_backward_cuda", "interpolation_forward_cuda", "knnquery_cuda", "stack_ball_query_forward",
    "stack_farthest_point_sampling_wrapper", "stack_group_points_backward", "stack_group_points_forward",
    "subtraction_backward_cuda", "subtraction_forward_cuda", "three_interpolate_grad_wrapper_stack",
    "three_interpolate_wrapper_stack", "three_nn_wrapper_stack", "voxel_query_wrapper",
]  # fmt: skip


def stacked_slices(counts: Iterable[int]) -> Iterator[slice]:
    """Where clouds of some sizes lie behind one another."""
    first = 0
    for count in counts:
        yield slice(first, first + count)
        first += count


def sizes_from_ends(ends: torch.Tensor) -> list[int]:
    """The sizes of clouds of which `ends` [B] says where each stops."""
    every = ends.tolist()
    return [end - begin for begin, end in zip([0, *every][:-1], every, strict=True)]


def of_the_whole(idx: torch.Tensor, idx_counts: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """Indices within each cloud, idx [M, ...] with idx_counts [B] rows each, as indices over all clouds."""
    starts = [where.start for where in stacked_slices(counts.tolist())]
    rows = stacked_slices(idx_counts.tolist())
    parts = [idx[where].long() + start for where, start in zip(rows, starts, strict=True)]
    return torch.cat(parts).clamp(min=0)


def rows_back(sums: torch.Tensor, idx: torch.Tensor, grad: torch.Tensor) -> None:
    """Add rows grad [K, C] to the rows idx [K] of sums [N, C]."""
    sums.index_add_(0, idx.reshape(-1).long(), grad.to(sums.dtype))


# --- by counts -------------------------------------------------------------------------------------------------------


def stack_ball_query_forward(
    new_xyz_tensor: torch.Tensor, new_xyz_batch_cnt: torch.Tensor, xyz_tensor: torch.Tensor,
    xyz_batch_cnt: torch.Tensor, idx_tensor: torch.Tensor, max_radius: float, nsample: int,
) -> None:  # fmt: skip
    """The first points of xyz [N1 + N2 ..., 3] within a radius of [M1 + M2 ..., 3], each in its own cloud, as in mmcv.

    Indices within the cloud go into int32 [M1 + M2 ..., nsample], the first repeated behind the last; where there is
    none, -1 goes into the first column. Counts: int32 [B].
    """
    ours, theirs = stacked_slices(new_xyz_batch_cnt.tolist()), stacked_slices(xyz_batch_cnt.tolist())
    for queries, points in zip(ours, theirs, strict=True):
        found = idx_tensor[queries][None].clone()
        most = squared_radius(max_radius)
        counts = within_radius(new_xyz_tensor[queries][None], xyz_tensor[points][None], 0.0, most, nsample, found)
        if nsample and found.numel():
            found[..., 0] = torch.where(counts > 0, found[..., 0], torch.full_like(found[..., 0], -1))
        idx_tensor[queries] = found[0]


def ball_query_wrapper_stack(
    b: int, m: int, radius: float, nsample: int, new_xyz: torch.Tensor, new_xyz_batch_cnt: torch.Tensor,
    xyz: torch.Tensor, xyz_batch_cnt: torch.Tensor, idx: torch.Tensor,
) -> int:  # fmt: skip
    """`ball_query_wrapper` of OpenPCDet's `pointnet2_stack_cuda`, which gives 1; see `stack_ball_query_forward`."""
    stack_ball_query_forward(new_xyz, new_xyz_batch_cnt, xyz, xyz_batch_cnt, idx, radius, nsample)
    return 1


def stack_group_points_forward(
    features_tensor: torch.Tensor, features_batch_cnt_tensor: torch.Tensor, idx_tensor: torch.Tensor,
    idx_batch_cnt_tensor: torch.Tensor, out_tensor: torch.Tensor, b: int, c: int, m: int, nsample: int,
) -> None:  # fmt: skip
    """features [N1 + N2 ..., C] at idx [M1 + M2 ..., nsample], each within its cloud, into [M1 + M2 ..., C, nsample],
    as in mmcv. An index below 0 reads the first point.
    """
    idx = of_the_whole(idx_tensor, idx_batch_cnt_tensor, features_batch_cnt_tensor)
    out_tensor.copy_(features_tensor[idx].transpose(1, 2))


def stack_group_points_backward(
    grad_out_tensor: torch.Tensor, idx_tensor: torch.Tensor, idx_batch_cnt_tensor: torch.Tensor,
    features_batch_cnt_tensor: torch.Tensor, grad_features_tensor: torch.Tensor, b: int, c: int, m: int, n: int,
    nsample: int,
) -> None:  # fmt: skip
    """Add the gradient of `stack_group_points_forward` to [N1 + N2 ..., C]; grad_out: [M1 + M2 ..., C, nsample]."""
    idx = of_the_whole(idx_tensor, idx_batch_cnt_tensor, features_batch_cnt_tensor)
    rows_back(grad_features_tensor, idx, grad_out_tensor.transpose(1, 2).reshape(-1, grad_out_tensor.shape[1]))


def group_points_wrapper_stack(
    b: int, m: int, c: int, nsample: int, features: torch.Tensor, features_batch_cnt: torch.Tensor, idx: torch.Tensor,
    idx_batch_cnt: torch.Tensor, out: torch.Tensor,
) -> int:  # fmt: skip
    """`group_points_wrapper` of `pointnet2_stack_cuda`, which gives 1; see `stack_group_points_forward`."""
    stack_group_points_forward(features, features_batch_cnt, idx, idx_batch_cnt, out, b, c, m, nsample)
    return 1


def group_points_grad_wrapper_stack(
    b: int, m: int, c: int, n: int, nsample: int, grad_out: torch.Tensor, idx: torch.Tensor,
    idx_batch_cnt: torch.Tensor, features_batch_cnt: torch.Tensor, grad_features: torch.Tensor,
) -> int:  # fmt: skip
    """`group_points_grad_wrapper` of `pointnet2_stack_cuda`, which gives 1; see `stack_group_points_backward`."""
    stack_group_points_backward(
        grad_out, idx, idx_batch_cnt, features_batch_cnt, grad_features, b, c, m, n, nsample
    )  # fmt: skip
    return 1


def three_nn_wrapper_stack(
    unknown: torch.Tensor, unknown_batch_cnt: torch.Tensor, known: torch.Tensor, known_batch_cnt: torch.Tensor,
    dist2: torch.Tensor, idx: torch.Tensor,
) -> None:  # fmt: skip
    """`three_nn_wrapper` of `pointnet2_stack_cuda`: the three nearest of known [M1 + M2 ..., 3] in the same cloud for
    unknown [N1 + N2 ..., 3]; squared distances, and indices over all clouds, both [N1 + N2 ..., 3].
    """
    ours, theirs = stacked_slices(unknown_batch_cnt.tolist()), stacked_slices(known_batch_cnt.tolist())
    for queries, points in zip(ours, theirs, strict=True):
        nearest, places = three_nearest(unknown[queries][None], known[points][None])
        dist2[queries], idx[queries] = nearest[0].to(dist2.dtype), (places[0] + points.start).to(idx.dtype)


def three_interpolate_wrapper_stack(
    features: torch.Tensor, idx: torch.Tensor, weight: torch.Tensor, out: torch.Tensor
) -> None:
    """`three_interpolate_wrapper` of `pointnet2_stack_cuda`: features [M, C], idx and weight [N, 3], out [N, C]."""
    out.copy_(sum(features[idx[:, each].long()] * weight[:, each, None] for each in range(3)))


def three_interpolate_grad_wrapper_stack(
    grad_out: torch.Tensor, idx: torch.Tensor, weight: torch.Tensor, grad_features: torch.Tensor
) -> None:
    """Add the gradient of `three_interpolate_wrapper_stack` to grad_features [M, C]; grad_out: [N, C]."""
    rows_back(grad_features, idx, (grad_out[:, None] * weight[..., None]).flatten(0, 1))


def stack_farthest_point_sampling_wrapper(
    points: torch.Tensor, temp: torch.Tensor, xyz_batch_cnt: torch.Tensor, idx: torch.Tensor,
    num_sampled_points: torch.Tensor,
) -> int:  # fmt: skip
    """Furthest points of each cloud of [N1 + N2 ..., 3], as many as num_sampled_points [B] says: indices over all
    clouds into idx int32, one cloud behind the other, as in `pointnet2_stack_cuda`, which gives 1.
    """
    stacked_furthest(points, temp, xyz_batch_cnt.tolist(), num_sampled_points.tolist(), idx, points.shape[0])
    return 1


def stacked_furthest(
    points: torch.Tensor, temp: torch.Tensor, counts: list[int], taken: list[int], idx: torch.Tensor, largest: int
) -> None:
    """Furthest points of clouds, whose kernel starts threads for `largest` points."""
    for cloud, where in zip(stacked_slices(counts), stacked_slices(taken), strict=True):
        near = temp[cloud][None].clone()
        size = where.stop - where.start
        found = furthest_points(points[cloud][None], near, size, threads_of_points(largest, 1024))
        temp[cloud] = near[0]
        idx[where] = (found[0] + cloud.start).to(idx.dtype)


def voxel_query_wrapper(
    m: int, r1: int, r2: int, r3: int, nsample: int, radius: float, z_range: int, y_range: int, x_range: int,
    new_xyz: torch.Tensor, xyz: torch.Tensor, new_coords: torch.Tensor, point_indices: torch.Tensor, idx: torch.Tensor,
) -> int:  # fmt: skip
    """The first points within a radius (on it, too) of new_xyz [M, 3], one in each voxel around new_coords int32 [M, 4]
    (sample, z, y, x), as in `pointnet2_stack_cuda`, which gives 1.

    point_indices: int32 [B, r1, r2, r3], the point of xyz [N, 3] in each voxel, negative for none. Into idx int32
    [M, nsample]: the first repeated behind the last; where there is none, -1 in the first column. All voxels around go
    in pieces of at most 2 ** 24.
    """
    shifts = torch.cartesian_prod(*(
        torch.arange(-reach, reach + 1, device=new_coords.device) for reach in (z_range, y_range, x_range)
    ))  # fmt: skip
    bounds = torch.tensor([r1, r2, r3], device=new_coords.device)
    for piece in point_pieces(m, 3 * len(shifts)):
        around = new_coords[piece, None, 1:].long() + shifts
        inside = ((around >= 0) & (around < bounds)).all(-1)
        around = torch.where(inside[..., None], around, torch.zeros_like(around))
        at = (new_coords[piece, :1].long(), *around.unbind(-1))
        points = point_indices[at].long()
        gone = xyz[points.clamp(min=0)] - new_xyz[piece, None]
        distances = gone[..., 0].square() + gone[..., 1].square() + gone[..., 2].square()
        mask = inside & (points >= 0) & (distances <= squared_radius(radius))
        found, number = first_of(mask, nsample)
        found = torch.where(found < len(shifts), found, found[:, :1]).clamp(max=len(shifts) - 1)
        held = idx[piece]
        taken = torch.where((number > 0)[:, None], points.gather(1, found).to(idx.dtype), held)
        taken[:, 0] = torch.where(number > 0, taken[:, 0], torch.full_like(taken[:, 0], -1))
        idx[piece] = taken
    return 1


# --- by ends ---------------------------------------------------------------------------------------------------------


def furthestsampling_cuda(
    b: int, n: int, xyz: torch.Tensor, offset: torch.Tensor, new_offset: torch.Tensor, tmp: torch.Tensor,
    idx: torch.Tensor,
) -> None:  # fmt: skip
    """Furthest points of each cloud of xyz [N, 3], as in `pointops_cuda` of Point Transformer.

    offset, new_offset: int32 [B], where each cloud and what is taken of it ends; tmp: float32 [N]; idx: int32, indices
    over all clouds.
    """
    stacked_furthest(xyz, tmp, sizes_from_ends(offset), sizes_from_ends(new_offset), idx, n)


def knnquery_cuda(
    m: int, nsample: int, xyz: Any, new_xyz: Any, offset: torch.Tensor, new_offset: torch.Tensor, idx: torch.Tensor,
    dist2: torch.Tensor,
) -> None:  # fmt: skip
    """The nsample nearest of xyz [N, 3] in the same cloud for new_xyz [M, 3]: indices over all clouds, int32, and
    squared distances, both [M, nsample], as in `pointops_cuda`.

    Where a cloud has fewer, its first point and 1e10; among equals another index may come first than there. That of
    PointWeb has as many arguments: (b, n, m, nsample, xyz [B, N, 3], new_xyz [B, M, 3], idx, dist2), into
    [B, M, nsample], with 0 and inf where there are fewer. So has this, by position.
    """
    if not isinstance(xyz, torch.Tensor):
        points, queries = offset, new_offset
        nearest, places = nearest_points(queries, points, int(new_xyz))
        dist2.copy_(torch.where(nearest < 1e10, nearest, torch.full_like(nearest, float("inf"))))
        idx.copy_(places)
        return
    clouds, ours = stacked_slices(sizes_from_ends(offset)), stacked_slices(sizes_from_ends(new_offset))
    for points, queries in zip(clouds, ours, strict=True):
        nearest, places = nearest_points(new_xyz[queries][None], xyz[points][None], nsample)
        dist2[queries], idx[queries] = nearest[0].to(dist2.dtype), (places[0] + points.start).to(idx.dtype)


def grouping_forward_cuda(
    m: int, nsample: int, c: int, input: torch.Tensor, idx: torch.Tensor, output: torch.Tensor
) -> None:
    """input [N, C] at idx int32 [M, nsample] into output [M, nsample, C], as in `pointops_cuda`."""
    output.copy_(input[idx.long()])


def grouping_backward_cuda(
    m: int, nsample: int, c: int, grad_output: torch.Tensor, idx: torch.Tensor, grad_input: torch.Tensor
) -> None:
    """Add the gradient of `grouping_forward_cuda` to grad_input [N, C]; grad_output: [M, nsample, C]."""
    rows_back(grad_input, idx, grad_output.flatten(0, 1))


def interpolation_forward_cuda(
    n: int, c: int, k: int, input: torch.Tensor, idx: torch.Tensor, weight: torch.Tensor, output: torch.Tensor
) -> None:
    """Add the weighted sums of k rows of input [M, C], at idx with weight [N, k], to output [N, C], as in
    `pointops_cuda`.
    """
    output.add_((input[idx.long()] * weight[..., None]).sum(1))


def interpolation_backward_cuda(
    n: int, c: int, k: int, grad_output: torch.Tensor, idx: torch.Tensor, weight: torch.Tensor, grad_input: torch.Tensor
) -> None:
    """Add the gradient of `interpolation_forward_cuda` to grad_input [M, C]; grad_output: [N, C]."""
    rows_back(grad_input, idx, (grad_output[:, None] * weight[..., None]).flatten(0, 1))


def subtraction_forward_cuda(
    n: int, nsample: int, c: int, input1: torch.Tensor, input2: torch.Tensor, idx: torch.Tensor, output: torch.Tensor
) -> None:
    """input1 [N, C] less input2 [N, C] at idx int32 [N, nsample] into output [N, nsample, C], as in `pointops_cuda`."""
    output.copy_(input1[:, None] - input2[idx.long()])


def subtraction_backward_cuda(
    n: int, nsample: int, c: int, idx: torch.Tensor, grad_output: torch.Tensor, grad_input1: torch.Tensor,
    grad_input2: torch.Tensor,
) -> None:  # fmt: skip
    """Add the gradients of `subtraction_forward_cuda` to both [N, C]; grad_output: [N, nsample, C]."""
    grad_input1.add_(grad_output.sum(1))
    rows_back(grad_input2, idx, -grad_output.flatten(0, 1))


def aggregation_forward_cuda(
    n: int, nsample: int, c: int, w_c: int, input: torch.Tensor, position: torch.Tensor, weight: torch.Tensor,
    idx: torch.Tensor, output: torch.Tensor,
) -> None:  # fmt: skip
    """Add sums over the samples of (input [N, C] at idx + position) * weight to output [N, C], as in `pointops_cuda`.

    position: [N, nsample, C]; weight: [N, nsample, w_c], one for each w_c-th channel; idx: int32 [N, nsample].
    """
    output.add_(((input[idx.long()] + position) * shared_weights(weight, c)).sum(1))


def aggregation_backward_cuda(
    n: int, nsample: int, c: int, w_c: int, input: torch.Tensor, position: torch.Tensor, weight: torch.Tensor,
    idx: torch.Tensor, grad_output: torch.Tensor, grad_input: torch.Tensor, grad_position: torch.Tensor,
    grad_weight: torch.Tensor,
) -> None:  # fmt: skip
    """The gradients of `aggregation_forward_cuda`: added to grad_input [N, C] and grad_weight [N, nsample, w_c],
    written into grad_position [N, nsample, C].
    """
    by_sample = grad_output[:, None] * shared_weights(weight, c)
    rows_back(grad_input, idx, by_sample.flatten(0, 1))
    grad_position.copy_(by_sample)
    by_weight = grad_output[:, None] * (input[idx.long()] + position)
    grad_weight.add_(by_weight.unflatten(-1, (-1, w_c)).sum(-2))


def shared_weights(weight: torch.Tensor, channels: int) -> torch.Tensor:
    """weight [N, nsample, w_c] for each of `channels`, of which every w_c-th shares one."""
    return weight.repeat(1, 1, channels // weight.shape[-1])
