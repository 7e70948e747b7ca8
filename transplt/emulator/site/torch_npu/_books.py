"""What the cards hold: the memory of live npu tensors, by card. It is accounted for; the host's is what is used.

A tensor's memory counts from when it is labelled npu until PyTorch frees it, rounded as torch_npu's allocator does
(`round_size`, NPUCachingAllocator.cpp). Memory that PyTorch's CPU allocator did not make (an alias, a file) is somebody
else's. Workspaces of operators and fragmentation do not count: a card is full somewhat earlier.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch
from npu_emulator import limits
from npu_emulator.config import config
from npu_emulator.host_memory import raise_if_host_is_full
from npu_emulator.record import record
from npu_emulator.user_code import nearest

from ._kind import EMULATED, KIND

#: Whether this process counts: the stand-in for CUDA does not.
COUNTED = KIND == "npu"
#: Bytes of one card; 0 where nothing is known.
TOTAL = limits.card_memory() if COUNTED else 0
_PAD, _BLOCK = 32, 512
#: Bytes held now, and at most since `reset_peak`, by card.
held = [0] * config.npus
peaks = [0] * config.npus
#: The most that a card held, whatever was reset, what optimizers keep (`_optimizer_state`), and that at the most.
most = [0] * config.npus
states = [0] * config.npus
states_at_most = [0] * config.npus
#: Share of the card's memory that a process may take, where it set one, and what that comes to, by card.
fractions: dict[int, float] = {}
allowed = [TOTAL] * config.npus
refusals = [0] * config.npus
_live: dict[int, _Memory] = {}


class _Memory(weakref.ref):  # type: ignore[type-arg]
    """A storage of the CPU under an npu tensor, by its address."""

    __slots__ = ("address", "index", "size")
    address: int
    index: int
    size: int


def _gone(memory: _Memory) -> None:
    if _live.get(memory.address) is memory:
        del _live[memory.address]
    held[memory.index] -= memory.size


def rounded(size: int) -> int:
    """The bytes of the card that `size` bytes take."""
    return (size + _PAD + _BLOCK - 1) // _BLOCK * _BLOCK


def enter(tensor: Any, index: int) -> None:
    """Count the memory under a CPU tensor that becomes one of `npu:index`. OutOfMemoryError when the card is full."""
    storage = tensor.untyped_storage()
    size = storage.nbytes()
    if not size or not storage.resizable():
        return
    address = storage.data_ptr()
    known = _live.get(address)
    if known is not None and known() is not None:
        return
    size = rounded(size)
    if held[index] + size > allowed[index]:
        reserve(size, index)
    memory = _live[address] = _Memory(storage, _gone)
    memory.address, memory.index, memory.size = address, index, size
    held[index] += size
    if held[index] > peaks[index]:
        peaks[index] = held[index]
        if held[index] > most[index]:
            most[index], states_at_most[index] = held[index], states[index]


def reserve(size: int, index: int) -> None:
    """OutOfMemoryError, as torch_npu raises it, when `npu:index` does not have `size` bytes more."""
    if not TOTAL or not config.enforced or held[index] + size <= allowed[index]:
        return
    refusals[index] += 1
    limit = limits.text("memory")
    total = shown(TOTAL)
    message = limit.message.format(total=total, card=limits.card_title())
    record.finding(nearest(2), limit.code, message, limit.help)
    words = limit.words.format(
        need=shown(size), index=index, total=total, allocated=shown(held[index]), free=shown(TOTAL - held[index]),
        allowed=f"{shown(allowed[index])} allowed; " if index in fractions else "",
    )  # fmt: skip
    raise torch.OutOfMemoryError(f"{EMULATED} {words} {message}: {limit.help} [{limit.code}]")


def restrict(fraction: float, index: int) -> None:
    """Let this process take a share of the memory of `npu:index`."""
    fractions[index], allowed[index] = fraction, int(TOTAL * fraction)


def shown(size: int) -> str:
    """`1.50 GiB`, as torch_npu prints sizes."""
    for unit, bits in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 1 << bits:
            return f"{size / (1 << bits):.2f} {unit}"
    return f"{size} bytes"


def made(make: Any, shape: Any, *rest: Any, dtype: Any, index: int, **how: Any) -> Any:
    """`make(shape, *rest)` on the CPU for `npu:index`, if the card has the memory. HostTooSmall if the host has not."""
    size = (dtype or torch.get_default_dtype()).itemsize
    for length in shape:
        size *= int(length)
    if TOTAL:
        reserve(size, index)
    try:
        return make(shape, *rest, dtype=dtype, device="cpu", **how)
    except RuntimeError as error:
        raise_if_host_is_full(error)
        raise
