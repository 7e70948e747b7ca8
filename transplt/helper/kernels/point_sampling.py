"""Furthest point sampling, one step after the other."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import torch

from transplt.helper.kernels.points import as_float32

__all__ = []


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
