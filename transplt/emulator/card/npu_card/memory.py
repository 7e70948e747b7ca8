"""How much memory of each card the program held, as torch_npu's own allocator counts it, and what of that is state of
optimizers: for the report of the run.

State is counted by the storages of its npu tensors, each once, behind the first step and where an optimizer gets more
entries. A peak that lies in a step counts with the state that is there when the step is over: an optimizer makes it
first.
"""

from __future__ import annotations

import collections
import functools
import weakref
from typing import Any

import torch
from npu_emulator import limits
from npu_emulator.config import config
from npu_emulator.record import at_end, record
from npu_emulator.state_bytes import state_bytes
from npu_emulator.user_code import nearest
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from . import libraries

_npu: Any = torch.npu  # type: ignore[attr-defined]
#: What the allocator adds to a request, and the size that it rounds to, in bytes (NPUCachingAllocator.cpp).
_PAD, _BLOCK = 32, 512
#: The most that a card held, whatever was reset, in bytes by card; what optimizers keep there, and kept at the most.
_most: collections.Counter[int] = collections.Counter()
_states: collections.Counter[int] = collections.Counter()
_states_at_most: collections.Counter[int] = collections.Counter()
#: Optimizer -> the number of its entries when they were counted, and their bytes by card.
_counted: weakref.WeakKeyDictionary[Any, tuple[int, collections.Counter[int]]] = weakref.WeakKeyDictionary()


def install() -> None:
    """Count from here on; torch_npu is imported."""
    import torch_npu

    c: Any = torch_npu._C
    for owner, name in ((c, "_npu_resetPeakMemoryStats"), (torch._C, "_accelerator_resetPeakStats")):
        if hasattr(owner, name):
            setattr(owner, name, _looking_first(getattr(owner, name)))
    register_optimizer_step_pre_hook(_begins)
    register_optimizer_step_post_hook(_ends)
    at_end(_tell)
    if config.enforced:
        # Not now: it would begin to use the device, and processes are forked before that.
        _npu._lazy_call(lambda: c._npu_attach_out_of_memory_observer(_full))


def _looking_first(reset: Any) -> Any:
    """The peak is looked at before the program lets it be forgotten."""

    @functools.wraps(reset)
    def forget(*args: Any) -> Any:
        _look_at_all()
        return reset(*args)

    return forget


def _look_at_all() -> None:
    if _npu.is_initialized():
        for card in range(_npu.device_count()):
            _look(card)


def _look(card: int) -> None:
    """Take the peak of the allocator if it is higher than those before it."""
    import torch_npu

    library: Any = torch_npu._C
    peak = library._npu_memoryStats(card)["allocated_bytes"]["all"]["peak"]
    if peak > _most[card]:
        _most[card], _states_at_most[card] = peak, _states[card]


def _full(card: int, wanted: int, total: int, free: int) -> None:
    """Called by the allocator before it raises OutOfMemoryError."""
    text = limits.text("memory")
    message = text.message.format(total=f"{total / (1 << 30):.2f} GiB", card=limits.card_title())
    record.finding(nearest(2), text.code, message, text.help)


def _begins(optimizer: Any, args: Any, kwargs: Any) -> None:
    if _npu.is_initialized():
        _look(_npu.current_device())


def _ends(optimizer: Any, args: Any, kwargs: Any) -> None:
    if not _npu.is_initialized():
        return
    card = _npu.current_device()
    before = _most[card]
    entries = sum(len(entry) if isinstance(entry, dict) else 1 for entry in optimizer.state.values())
    known = _counted.get(optimizer)
    if known is None or known[0] != entries:
        _counted[optimizer] = entries, state_bytes(optimizer.state, _rounded)
        _states.clear()
        for _, held in _counted.values():
            _states.update(held)
    _look(card)
    if _most[card] > before:
        _states_at_most[card] = min(_states[card], _most[card])


def _rounded(size: int) -> int:
    """The bytes that the allocator takes for a request."""
    return (size + _PAD + _BLOCK - 1) // _BLOCK * _BLOCK


def _tell() -> None:
    """Into the record, for each card that held anything, and how often something was copied to or from one. What a
    forked process inherits is told by its parent."""
    copies = int(libraries.runtime.card_copies())
    if copies:
        record.operators["aclrtMemcpy"] = copies
    if record.forked:
        return
    _look_at_all()
    record.memory = [
        {
            "card": card,
            "peak": most,
            "optimizer_state": _states[card],
            "optimizer_state_at_peak": _states_at_most[card],
        }
        for card, most in sorted(_most.items())
        if most
    ]
