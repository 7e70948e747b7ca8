"""Grids of kernels in Triton that go through their blocks themselves: as many programs as the card has cores."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import torch

__all__ = ["cube_grid", "vector_grid"]

_Grid = tuple[int, ...] | Callable[[Mapping[str, Any]], Any]


def vector_grid(grid: _Grid) -> Any:
    """The grid of a kernel that computes on vectors alone: its blocks in one dimension, at most one a vector core.

    `grid` is what the kernel was launched over: sizes of the dimensions, or a function that gives them from the values
    of the constexprs; what comes back is of the same kind. ValueError for more blocks than 32 bits count.
    """
    return _on_cores(grid, "num_vectorcore")


def cube_grid(grid: _Grid) -> Any:
    """As `vector_grid`, for a kernel that multiplies matrices (`tl.dot`): at most one a cube core."""
    return _on_cores(grid, "num_aicore")


def _on_cores(grid: _Grid, kind: str) -> Any:
    if callable(grid):
        return lambda meta: _on_cores(grid(meta), kind)
    blocks = math.prod(grid) if isinstance(grid, (tuple, list)) else int(grid)
    if blocks >= 2**31:
        raise ValueError(f"a kernel over {blocks} blocks: more than a 32-bit number counts")
    return (min(blocks, _cores(kind)),)


@functools.lru_cache(8)
def _cores(kind: str) -> int:
    """How many cores of a kind the card has, as triton-ascend says it, or torch_npu; 40 and 20 (the smaller Atlas A2)
    where neither does, as in Triton's interpreter.
    """
    try:
        from triton.runtime import driver

        return int(driver.active.utils.get_device_properties(torch.npu.current_device())[kind])
    except (ImportError, AttributeError, KeyError, RuntimeError, TypeError):
        pass
    try:
        card = torch.npu.get_device_properties(torch.npu.current_device())
        return int(card.vector_core_num if kind == "num_vectorcore" else card.cube_core_num)
    except (AttributeError, RuntimeError, TypeError):
        return 40 if kind == "num_vectorcore" else 20
