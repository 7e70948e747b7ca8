"""How many cards there are, which one is current, and their random number generators."""

from __future__ import annotations

import os
import threading
from typing import Any

import torch
from npu_emulator.config import config, visible_cards

from .kind import EMULATED, KIND

#: Draw random numbers from the CPU generator: then a run is bit-comparable with one on the CPU.
SHARED_RANDOM = config.random == "cpu"


class _State(threading.local):
    device = 0


state = _State()
#: One for each card, filled by `make_generators`.
generators: list[Any] = []
#: True in a process forked after its parent had used the device.
forked = False


def count() -> int:
    """How many cards the program sees, by the environment as it is now."""
    return visible_cards("CUDA_VISIBLE_DEVICES")


def check_index(index: int) -> None:
    """RuntimeError unless `cuda:index` exists."""
    if not 0 <= index < count():
        raise RuntimeError(
            f"{EMULATED} invalid device ordinal {KIND}:{index}: this run has {count()} device(s), see --npus"
        )


def index_of(device: Any) -> int:
    """The index that an int, a string, a torch.device or None stands for; None and negative numbers: the current
    device."""
    index = device
    if not (device is None or isinstance(device, int)):
        try:
            named = torch.device(device)
        except TypeError:
            raise ValueError(f"{EMULATED} {device!r} does not name a device") from None
        if named.type != KIND:
            raise ValueError(f"{EMULATED} a device of type {KIND} is wanted here, not {named}")
        index = named.index
    return state.device if index is None or index < 0 else int(index)


def make_generators() -> None:
    for _ in range(config.npus):
        generator = torch.Generator()
        generator.manual_seed(torch.initial_seed())
        generators.append(generator)


def watch_forks(used: Any) -> None:
    """Remember, in a forked child, whether its parent had used the device (`used()`)."""

    def after_fork() -> None:
        global forked
        forked = forked or bool(_used_before_fork)

    _used_before_fork: list[bool] = []

    def before_fork() -> None:
        _used_before_fork[:] = [True] if used() else []

    os.register_at_fork(before=before_fork, after_in_child=after_fork)
