"""Points in voxels: hard and dynamic voxelization, and features of points reduced by voxel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from transplt.helper.kernels.points import as_float32

__all__ = [
    "dynamic_point_to_voxel_backward", "dynamic_point_to_voxel_forward", "dynamic_voxelize_forward",
    "hard_voxelize_forward",
]  # fmt: skip


def grid_of(size: Sequence[float], limits: Sequence[float]) -> list[int]:
    """How many cells there are along x, y and z, as the kernels round it."""
    lengths = [as_float32(as_float32(limits[axis + 3]) - as_float32(limits[axis])) for axis in range(3)]
    return [math.floor(as_float32(length / as_float32(edge)) + 0.5) for length, edge in zip(lengths, size, strict=True)]


def cells_of(points: torch.Tensor, size: Sequence[float], limits: Sequence[float]) -> tuple[torch.Tensor, torch.Tensor]:
    """The cell [N, 3] of each point, x first, int32, and for each axis whether it lies in the grid, bool [N, 3].

    size: three edges; limits: least x, y, z and largest x, y, z. In float32, as the kernels compute it.
    """
    edges, bounds = [as_float32(each) for each in size], [as_float32(each) for each in limits]
    extents = grid_of(size, limits)
    cells, inside = [], []
    for axis in range(3):
        place = ((points[:, axis] - bounds[axis]) / edges[axis]).floor()
        cells.append(place)
        inside.append((place >= 0) & (place < extents[axis]))
    within = torch.stack(inside, -1)
    return torch.where(within, torch.stack(cells, -1), -torch.ones_like(points[:, :3])).to(torch.int32), within


def cells_into(coors: torch.Tensor, cells: torch.Tensor, within: torch.Tensor) -> None:
    """Write cells, z first, into coors int32 [N, 3]; of points outside, -1 goes into as many columns as the kernel for
    CUDA writes: one where x is outside, two where y is, three where z is.
    """
    x, y, z = within[:, 0], within[:, 0] & within[:, 1], within.all(-1)
    out = -torch.ones_like(coors[:, 0])
    coors[:, 0] = torch.where(z, cells[:, 2].to(coors.dtype), out)
    coors[:, 1] = torch.where(z, cells[:, 1].to(coors.dtype), torch.where(x, out, coors[:, 1]))
    coors[:, 2] = torch.where(z, cells[:, 0].to(coors.dtype), torch.where(y, out, coors[:, 2]))


def as_numbers(values: Any) -> list[float]:
    """The numbers in a list, a tuple or a tensor."""
    return [float(each) for each in (values.tolist() if isinstance(values, torch.Tensor) else values)]


def ranks_in_groups(keys: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Equal elements of keys int64 [K] side by side, in their order: the order [K], the group of each [K], its rank in
    the group [K], and where each group begins [G].
    """
    ordered, order = keys.sort(stable=True)
    begins = torch.ones_like(ordered, dtype=torch.bool)
    begins[1:] = ordered[1:] != ordered[:-1]
    group = begins.long().cumsum(0) - 1
    starts = begins.nonzero()[:, 0]
    rank = torch.arange(len(keys), device=keys.device) - starts[group]
    return order, group, rank, starts


def dynamic_voxelize_forward(
    points: torch.Tensor, voxel_size: Any, coors_range: Any, coors: Any, NDim: int = 3
) -> None:
    """The voxel of each point, z first, into coors int32 [N, 3], as in mmcv; points: [N, C] with x, y, z first.

    Points outside get -1 in the first column, and in those behind it by the axis, as on CUDA. voxel_size [3] and
    coors_range [6] are tensors or lists. mmcv before 1.5 takes (points, coors, voxel_size, coors_range, NDim), by
    position: so does this.
    """
    if not isinstance(coors, torch.Tensor) or coors.shape != (points.shape[0], 3):
        voxel_size, coors_range, coors = coors_range, coors, voxel_size
    cells_into(coors, *cells_of(points, as_numbers(voxel_size), as_numbers(coors_range)))


def hard_voxelize_forward(
    points: torch.Tensor, voxel_size: Any, coors_range: Any, voxels: Any, coors: Any, num_points_per_voxel: Any,
    voxel_num: Any, max_points: int, max_voxels: int, NDim: int = 3, deterministic: bool = True,
) -> int:  # fmt: skip
    """The first max_points points of each of the first max_voxels voxels, in the order of the points, as in mmcv.

    points: [N, C]; voxels: [max_voxels, max_points, C]; coors: int32 [max_voxels, 3], z first; num_points_per_voxel:
    int32 [max_voxels]; voxel_num: int64 [], gets how many voxels there are. The buffers start from zeros. Gives the
    number as well, as mmcv before 1.5 does, whose order (points, voxels, coors, num_points_per_voxel, voxel_size,
    coors_range, max_points, max_voxels, NDim) is taken, by position. Where deterministic is false the kernel takes any
    order; here it is that of the points. Sorts the points by voxel: N times some 60 bytes.
    """
    if not isinstance(coors, torch.Tensor):
        old = (voxel_size, coors_range, voxels, coors, num_points_per_voxel, voxel_num, max_points)
        voxels, coors, num_points_per_voxel, voxel_size, coors_range, max_points, max_voxels = old
        voxel_num = None
    limits, size = as_numbers(coors_range), as_numbers(voxel_size)
    cells, within = cells_of(points, size, limits)
    inside = within.all(-1).nonzero()[:, 0]
    count = 0
    if len(inside) and max_voxels > 0 and max_points > 0:
        cells = cells[inside].long()
        along_x, along_y, _ = grid_of(size, limits)
        keys = (cells[:, 2] * along_y + cells[:, 1]) * along_x + cells[:, 0]
        order, group, rank, starts = ranks_in_groups(keys)
        firsts = order[starts]  # the sort is stable: the first point of each voxel
        seen = torch.zeros(len(inside), dtype=torch.int64, device=points.device)
        seen[firsts] = 1
        number = (seen.cumsum(0) - 1)[firsts]
        count = min(len(starts), max_voxels)
        kept = (rank < max_points) & (number[group] < max_voxels)
        at = (number[group][kept], rank[kept])
        voxels[at] = points[inside[order[kept]]].to(voxels.dtype)
        sizes = torch.diff(starts, append=starts.new_full((1,), len(inside))).clamp(max=max_points)
        some = number < max_voxels
        coors[number[some]] = cells[firsts[some]].flip(-1).to(coors.dtype)
        num_points_per_voxel[number[some]] = sizes[some].to(num_points_per_voxel.dtype)
    if voxel_num is not None:
        voxel_num.fill_(count)
    return count


def dynamic_point_to_voxel_forward(
    feats: torch.Tensor, coors: torch.Tensor, reduce_type: str
) -> list[torch.Tensor]:
    """Features of points reduced by voxel, as in mmcv: feats [N, C], coors int32 [N, 3 or 4], "max", "sum" or "mean".

    Gives the reduced [V, C], the voxels [V, 3 or 4] in the order of their coordinates, the voxel of each point int32
    [N], -1 for points with a negative coordinate, and int32 [V], how many points each has. "max" is found in float32.
    """
    if reduce_type not in ("max", "sum", "mean"):
        raise ValueError(f"do not support reduce type {reduce_type}")
    if len(feats) == 0:
        none = torch.zeros(0, dtype=torch.int32, device=coors.device)
        return [feats.clone().detach(), coors.clone().detach(), none, none.clone()]
    valid = (coors >= 0).all(-1)
    inside = valid.nonzero()[:, 0]
    where = torch.full((len(feats),), -1, dtype=torch.int32, device=coors.device)
    places = coors[inside].long()
    if len(inside) == 0:
        return [feats.new_zeros(0, feats.shape[1]), coors.new_zeros(0, coors.shape[1]), where, where.new_zeros(0)]
    keys = torch.zeros_like(places[:, 0])
    for axis, extent in enumerate((places.amax(0) + 1).tolist()):
        keys = keys * extent + places[:, axis]
    order, group, _, starts = ranks_in_groups(keys)
    where[inside[order]] = group.to(torch.int32)
    counts = torch.diff(starts, append=starts.new_full((1,), len(inside)))
    held = feats[inside[order]]
    if reduce_type == "max":
        reduced = torch.full((len(starts), feats.shape[1]), -math.inf, dtype=torch.float32, device=feats.device)
        index = group[:, None].expand(-1, feats.shape[1])
        reduced = reduced.scatter_reduce(0, index, held.float(), "amax").to(feats.dtype)
    else:
        reduced = feats.new_zeros(len(starts), feats.shape[1]).index_add_(0, group, held)
        if reduce_type == "mean":
            reduced = reduced / counts[:, None].to(reduced.dtype)
    return [reduced, coors[inside[order[starts]]], where, counts.to(torch.int32)]


def dynamic_point_to_voxel_backward(
    grad_feats: torch.Tensor, grad_reduced_feats: torch.Tensor, feats: torch.Tensor, reduced_feats: torch.Tensor,
    coors_idx: torch.Tensor, reduce_count: torch.Tensor, reduce_type: str,
) -> None:  # fmt: skip
    """Write the gradient of `dynamic_point_to_voxel_forward` into grad_feats [N, C], as in mmcv.

    The gradient of a largest value goes to the first point that has it.
    """
    grad_feats.zero_()
    if len(feats) == 0 or len(reduced_feats) == 0:
        return
    inside = (coors_idx >= 0).nonzero()[:, 0]
    group = coors_idx[inside].long()
    if reduce_type != "max":
        grad = grad_reduced_feats[group]
        if reduce_type == "mean":
            grad = grad / reduce_count[group][:, None].to(grad.dtype)
        grad_feats[inside] = grad.to(grad_feats.dtype)
        return
    held, none = feats[inside], float(len(inside))
    places = torch.arange(len(inside), dtype=torch.float32, device=feats.device)[:, None].expand_as(held)
    places = torch.where(held == reduced_feats[group], places, torch.full_like(places, none))
    index = group[:, None].expand_as(held)
    firsts = torch.full(reduced_feats.shape, none, device=feats.device).scatter_reduce(0, index, places, "amin").long()
    back = torch.zeros(len(inside) + 1, feats.shape[1], dtype=grad_feats.dtype, device=feats.device)
    grad_feats[inside] = back.scatter_add_(0, firsts, grad_reduced_feats.to(back.dtype))[:-1]
