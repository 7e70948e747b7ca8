# SPDX-License-Identifier: 0BSD
# Functions that this project calls to run on Ascend NPUs. Written by transplt 0.1.0; it belongs to the project now:
# change it as you like, transplt does not edit it again. 0BSD: use, copy, change and distribute it for any purpose,
# with or without fee; it comes without any warranty.

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch


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


def unshared(found: Any, given: Sequence[Any] = ()) -> Any:
    """A tensor in memory of its own where it is a view and none of `given`; else what it is."""
    if not isinstance(found, torch.Tensor) or not found._is_view() or any(found is each for each in given):
        return found
    return found.clone()


def threads_of_points(count: int, most: int) -> int:
    """How many threads the kernels for furthest points start: the power of two below `count`, at most `most`."""
    return max(1, min(most, 1 << max(0, count.bit_length() - 1)))


def order_of_threads(count: int) -> list[int]:
    """Which of `count` threads, a power of two, comes first in a tie: they are compared in halves, so that the lowest
    bit of a number counts most.
    """
    order = [0]
    while len(order) < count:
        order = [2 * each for each in order] + [2 * each + 1 for each in order]
    return order


def furthest_points(
    points: torch.Tensor, temp: torch.Tensor, count: int, threads: int, *, given: bool = False, skips: bool = False
) -> torch.Tensor:
    """The first point and the `count` - 1 that are each furthest from all before: int32 [B, count].

    Points are [B, N, 3], or distances [B, N, N] where `given`. `temp` [B, N] holds the squared distance to the nearest
    point taken, and is brought up to date. Among equals the kernels take the first point of the first thread in
    `order_of_threads`; thread t has the points t, t + threads, ...; so does this. `skips`: points whose squared
    distance from the origin is at most 0.001 are never taken. One step after the other, of some ten small operators
    each: slow on a card where no operator of DrivingSDK answers.
    """
    batch, size = points.shape[:2]
    chosen = torch.zeros(batch, count, dtype=torch.int32, device=points.device)
    if count < 2 or size == 0 or batch == 0:
        return chosen
    operator = None if given or skips else furthest_by_driving_sdk(points)
    if operator is not None and bool((temp >= 1e10).all()):
        return operator(points, count).to(torch.int32)
    places = [place for thread in order_of_threads(threads) for place in range(thread, size, threads)]
    order = torch.tensor(places, device=points.device)
    rows = torch.arange(batch, device=points.device)
    near = temp.float()[:, order]
    if not given:
        points = points[:, order].float()
    before = near
    if skips:
        near = near.masked_fill(points.square().sum(-1) <= as_float32(1e-3), -1)
    last = torch.zeros(batch, dtype=torch.int64, device=points.device)
    taken = [last]
    for _ in range(count - 1):
        if given:
            away = points[rows, order[last]].float()[:, order]
        else:
            gone = points - points[rows, last][:, None]
            away = gone[..., 0].square() + gone[..., 1].square() + gone[..., 2].square()
        near = torch.where(away < near, away, near)
        last = near.argmax(-1)
        taken.append(last)
    temp[:, order] = torch.where(near < 0, before, near).to(temp.dtype)
    return order[torch.stack(taken, -1)].to(torch.int32)


def furthest_by_driving_sdk(points: torch.Tensor) -> Callable[[torch.Tensor, int], torch.Tensor] | None:
    """DrivingSDK's operator where it is there for points [B, N, 3]: on an NPU, float32, at most 383,166 numbers.

    https://gitcode.com/Ascend/DrivingSDK, docs/zh/api/context/furthest_point_sampling.md at e667017.
    """
    if points.device.type != "npu" or points.dtype != torch.float32 or not 0 < points.numel() <= 383_166:
        return None
    try:
        package = importlib.import_module("mx_driving")
    except ImportError:
        return None
    return getattr(package, "furthest_point_sampling", None)


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
