"""What one process knows of amp, and the scale of a loss."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch


@dataclass
class Options:
    """The properties behind an `opt_level`."""

    enabled: bool = False
    opt_level: str = ""
    cast_model_type: Any = None
    casts_functions: bool = False
    keep_batchnorm_fp32: bool = False
    master_weights: bool = False
    loss_scale: Any = 1.0
    combine_grad: bool = False
    combine_ddp: bool = False


@dataclass
class LossScaler:
    """The scale of one loss. A dynamic one halves on overflow and doubles after `window` steps without one."""

    dynamic: bool
    scale: float
    growth: float
    backoff: float
    window: int
    smallest: float | None
    largest: float
    unskipped: int = 0

    def update(self, overflow: bool) -> bool:
        """Account for a backward pass; True when the step is to be skipped (never with a fixed scale)."""
        skip = overflow and self.dynamic
        if skip:
            self.scale = max(self.scale * self.backoff, self.smallest or 0.0)
            self.unskipped = 0
        else:
            self.unskipped += 1
        if self.dynamic and self.unskipped == self.window:
            self.scale = min(self.largest, self.scale * self.growth)
            self.unskipped = 0
        return skip


@dataclass
class State:
    """`options` is None until `amp.initialize` was called."""

    options: Options | None = None
    scalers: list[LossScaler] = field(default_factory=list)
    verbosity: int = 1
    casts: Any = None  # the autocast context that O1 leaves open


state = State()


def maybe_print(text: str) -> None:
    """Print on the first rank, unless verbosity is 0."""
    distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
    if state.verbosity and not (distributed and torch.distributed.get_rank()):
        print(text)


@contextlib.contextmanager
def disable_casts() -> Iterator[None]:
    """Run a block without the casts of O1. Without O1 apex has nothing to switch off, and raises."""
    if state.casts is None:
        raise AttributeError("[emulated apex] amp.disable_casts needs amp.initialize with opt_level O1")
    with torch.autocast("npu", enabled=False):
        yield


def master_params(optimizer: Any) -> Iterator[Any]:
    """The parameters that the optimizer updates: with O2 the float32 copies once training has begun."""
    for group in optimizer.param_groups:
        yield from group["params"]
