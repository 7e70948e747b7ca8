"""How much of each card's memory is state of optimizers, and what of the peak: for the report of the run.

State is counted by the storages of its npu tensors, each once, behind the first step and where an optimizer gets more
entries. A peak that lies in a step counts with the state that is there when the step is over: an optimizer makes it
first.
"""

from __future__ import annotations

import weakref
from collections import Counter
from typing import Any

from npu_emulator.record import at_end, record
from npu_emulator.state_bytes import state_bytes
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from . import _books

#: Optimizer -> the number of its entries when they were counted, and their bytes by card.
_counted: weakref.WeakKeyDictionary[Any, tuple[int, Counter[int]]] = weakref.WeakKeyDictionary()
#: What the cards had held at most when the step began.
_before: list[int] = []


def install() -> None:
    """Count where memory counts: not where this is the stand-in for CUDA."""
    if _books.COUNTED:
        register_optimizer_step_pre_hook(_begins)
        register_optimizer_step_post_hook(_ends)
        at_end(_tell)


def _begins(optimizer: Any, args: Any, kwargs: Any) -> None:
    _before[:] = _books.most


def _ends(optimizer: Any, args: Any, kwargs: Any) -> None:
    entries = sum(len(entry) if isinstance(entry, dict) else 1 for entry in optimizer.state.values())
    known = _counted.get(optimizer)
    if known is None or known[0] != entries:
        _counted[optimizer] = entries, state_bytes(optimizer.state, _books.rounded)
    for index in range(len(_books.states)):
        _books.states[index] = sum(held[index] for _, held in _counted.values())
        if _before and _books.most[index] > _before[index]:
            _books.states_at_most[index] = min(_books.states[index], _books.most[index])


def _tell() -> None:
    """Into the record, for each card that held anything. What a forked process inherits is told by its parent."""
    if record.forked:
        return
    record.memory = [
        {
            "card": index,
            "peak": most,
            "optimizer_state": _books.states[index],
            "optimizer_state_at_peak": _books.states_at_most[index],
        }
        for index, most in enumerate(_books.most)
        if most
    ]
