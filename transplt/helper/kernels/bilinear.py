"""Reads between the pixels of maps, whose pixels lie in rows."""

from __future__ import annotations

from collections.abc import Iterator

import torch


def bilinear_corners(
    y: torch.Tensor, x: torch.Tensor, height: int, width: int
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """The four pixels around places of any shape: their numbers (row * width + column, int64) and weights.

    A pixel outside the map weighs 0, and so do all of a place that is 1 or more away from it, without a gradient.
    """
    inside = (y > -1) & (y < height) & (x > -1) & (x < width)
    y, x = torch.where(inside, y, 0), torch.where(inside, x, 0)
    top, left = y.detach().floor(), x.detach().floor()
    below, beyond = y - top, x - left
    for down in (0, 1):
        row = top + down
        part = below if down else 1 - below
        for right in (0, 1):
            column = left + right
            there = inside & (row >= 0) & (row < height) & (column >= 0) & (column < width)
            weight = torch.where(there, part * (beyond if right else 1 - beyond), 0)
            yield row.clamp(0, height - 1).long() * width + column.clamp(0, width - 1).long(), weight


def bilinear_read(
    rows: torch.Tensor, number: torch.Tensor, y: torch.Tensor, x: torch.Tensor, height: int, width: int
) -> torch.Tensor:
    """What maps hold at places `y`, `x` of any shape: [*places, channels], 0 outside.

    `rows` [maps * height * width, channels], `number` the map of each place (int64, broadcast to the places).
    Memory: five tensors of the size of the result.
    """
    found = rows.new_zeros(*y.shape, rows.shape[1])
    for index, weight in bilinear_corners(y, x, height, width):
        read = rows.index_select(0, (index + number * (height * width)).flatten())
        found = found + read.view(found.shape) * weight.unsqueeze(-1)
    return found
