"""What the operators on point clouds share: distances, nearest points, points within a radius.

Distances are sums of squares of differences in the type of the points, as the kernels compute them; a compiler for CUDA
may fuse a product and a sum, so that values differ in the last bit. Where queries and points together are many, queries
go in pieces of which the distances have at most 2 ** 24 elements (64 MiB in float32, some four tensors of it at once).
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import torch

__all__ = []


def point_pieces(queries: int, each: int) -> Iterator[slice]:
    """Slices over `queries` of which each takes `each` elements of a piece."""
    step = max(1, 2**24 // max(1, each))
    return (slice(first, min(first + step, queries)) for first in range(0, queries, step))


def as_float32(value: float) -> float:
    """A Python number as a kernel sees it that takes `float`."""
    return float(ctypes.c_float(value).value)


def squared_radius(radius: float) -> float:
    """radius * radius as a kernel computes it in float32."""
    return as_float32(as_float32(radius) ** 2)


def squared_distances(queries: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
    """[..., M, D] and [..., N, D] to [..., M, N], without a gradient."""
    queries, points = queries.detach(), points.detach()
    total = torch.zeros((), dtype=queries.dtype, device=queries.device)
    for axis in range(queries.shape[-1]):
        gone = queries[..., :, None, axis] - points[..., None, :, axis]
        total = gone.mul_(gone) if axis == 0 else total.add_(gone.mul_(gone))
    return total


def first_of(mask: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The places of the first `count` true elements of each row: int64 [..., M, count], and how many, [..., M].

    What is behind the last is filled with the number of elements of a row.
    """
    size = mask.shape[-1]
    places = torch.arange(size, dtype=torch.float32, device=mask.device)  # exact below 2 ** 24, and topk takes it
    keys = torch.where(mask, places, torch.full_like(places, size))
    found = keys.topk(min(count, size), dim=-1, largest=False).values.long()
    if count > size:
        filler = found.new_full((*found.shape[:-1], count - size), size)
        found = torch.cat([found, filler], -1)
    return found, mask.sum(-1)


def within_radius(
    queries: torch.Tensor, points: torch.Tensor, least: float, most: float, count: int, into: torch.Tensor
) -> torch.Tensor:
    """Write into int32 [B, M, count] which points lie at a squared distance in [least, most), or at 0 where least is
    above 0; in order, the first repeated where they are fewer; rows without any stay. Gives how many there are, [B, M].
    """
    counts = torch.zeros(queries.shape[:-1], dtype=torch.int64, device=queries.device)
    if 0 in (points.shape[1], count) or queries.numel() == 0:
        return counts
    for piece in point_pieces(queries.shape[1], queries.shape[0] * points.shape[1]):
        distances = squared_distances(queries[:, piece], points)
        if distances.dtype in (torch.float16, torch.bfloat16):  # compared with a radius in float32
            distances = distances.float()
        mask = distances < most
        if least > 0:
            mask = (mask & (distances >= least)) | (distances == 0)
        found, number = first_of(mask, count)
        found = torch.where(found < points.shape[1], found, found[..., :1]).to(into.dtype)
        into[:, piece] = torch.where((number > 0)[..., None], found, into[:, piece])
        counts[:, piece] = number
    return counts


def three_nearest(queries: torch.Tensor, points: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The three nearest of points [B, M, 3] for queries [B, N, 3]: squared distances and int32 indices, both [B, N, 3],
    nearest first, the lower index first among equals. inf and 0 where there are fewer.
    """
    shape = (*queries.shape[:-1], 3)
    nearest = torch.full(shape, float("inf"), dtype=queries.dtype, device=queries.device)
    places = torch.zeros(shape, dtype=torch.int32, device=queries.device)
    if queries.numel() == 0 or points.shape[1] == 0:
        return nearest, places
    for piece in point_pieces(queries.shape[1], queries.shape[0] * points.shape[1]):
        distances = squared_distances(queries[:, piece], points)
        for rank in range(3):
            least, at = distances.min(-1)
            nearest[:, piece, rank], places[:, piece, rank] = least, at.to(torch.int32)
            distances.scatter_(-1, at[..., None], float("inf"))
    return nearest, places


def nearest_points(queries: torch.Tensor, points: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The `count` nearest of points [B, N, 3] for queries [B, M, 3]: squared distances and int64 indices,
    [B, M, count], nearest first. 1e10 and index 0 for what is not there or further away.
    """
    shape = (*queries.shape[:-1], count)
    nearest = torch.full(shape, 1e10, dtype=torch.float32, device=queries.device)
    places = torch.zeros(shape, dtype=torch.int64, device=queries.device)
    taken = min(count, points.shape[1])
    if taken == 0 or queries.numel() == 0:
        return nearest, places
    for piece in point_pieces(queries.shape[1], queries.shape[0] * points.shape[1]):
        least, at = squared_distances(queries[:, piece], points).topk(taken, dim=-1, largest=False)
        least = least.float()
        nearest[:, piece, :taken] = torch.where(least < 1e10, least, torch.full_like(least, 1e10))
        places[:, piece, :taken] = torch.where(least < 1e10, at, torch.zeros_like(at))
    return nearest, places
