"""PyTorch's own profiler, asked for the times of the card: there are those of the host only, and the table has them.

The C++ part of the profiler asks a device for its events, which an emulated one has not: it would report an internal
error for every operator.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from npu_emulator.record import record

from .kind import KIND


def install() -> None:
    """Let `torch.autograd.profiler.profile(use_device=...)` profile the host, and its tables sort by what there is."""
    profiler: Any = torch.autograd.profiler
    started = profiler.profile.__init__

    @functools.wraps(started)
    def init(self: Any, enabled: Any = True, **kwargs: Any) -> None:
        if enabled and (kwargs.get("use_device") == KIND or kwargs.get("use_cuda")):
            record.note(f"the profiler shows the times of the host: those of the {KIND} need a card")
            kwargs.update(use_device=None, use_cuda=False)
        started(self, enabled, **kwargs)

    tabulated = torch.autograd.profiler_util.EventList.table

    @functools.wraps(tabulated)
    def table(self: Any, sort_by: Any = None, *args: Any, **kwargs: Any) -> Any:
        if isinstance(sort_by, str) and self._use_device is None:
            sort_by = sort_by.replace(KIND, "cpu")
        return tabulated(self, sort_by, *args, **kwargs)

    profiler.profile.__init__ = init
    profiler_util: Any = torch.autograd.profiler_util
    profiler_util.EventList.table = table
