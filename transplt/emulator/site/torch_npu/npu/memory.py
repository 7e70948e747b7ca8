"""Memory figures: those of the books that `_books` keeps of live tensors. There is no cache: reserved is allocated."""

from __future__ import annotations

import collections
import contextlib
import pickle
from typing import Any

from npu_emulator.names import NotEmulated

from .. import _books, _devices

__all__ = [
    "MemPool", "NPUPluggableAllocator", "caching_allocator_alloc", "caching_allocator_delete",
    "change_current_allocator",
    "empty_cache", "empty_virt_addr_cache", "get_allocator_backend", "get_per_process_memory_fraction",
    "host_empty_cache",
    "host_memory_stats", "host_memory_stats_as_nested_dict", "max_memory_allocated", "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info", "memory_allocated", "memory_cached", "memory_reserved", "memory_snapshot", "memory_stats",
    "memory_stats_as_nested_dict", "memory_summary", "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated", "reset_max_memory_cached", "reset_peak_host_memory_stats", "reset_peak_memory_stats",
    "set_per_process_memory_fraction", "use_mem_pool",
]  # fmt: skip
#: Bytes of one card: the chosen one's, or the default one's where it is not known.
TOTAL = _books.TOTAL or 64 << 30


def memory_allocated(device: Any = None) -> int:
    """Bytes of the live tensors of a card, in blocks of 512."""
    return _books.held[_devices.index_of(device)]


def max_memory_allocated(device: Any = None) -> int:
    """The most that they were since `reset_peak_memory_stats`."""
    return _books.peaks[_devices.index_of(device)]


memory_reserved = memory_cached = memory_allocated
max_memory_reserved = max_memory_cached = max_memory_allocated


def reset_peak_memory_stats(device: Any = None) -> None:
    index = _devices.index_of(device)
    _books.peaks[index] = _books.held[index]


reset_max_memory_allocated = reset_max_memory_cached = reset_accumulated_memory_stats = reset_peak_memory_stats


def memory_stats(device: Any = None) -> Any:
    stats = collections.OrderedDict[str, int]()
    for kind in ("allocated_bytes", "reserved_bytes", "active_bytes"):
        for pool in ("all", "large_pool", "small_pool"):
            stats[f"{kind}.{pool}.current"] = memory_allocated(device) if pool == "all" else 0
            stats[f"{kind}.{pool}.peak"] = max_memory_allocated(device) if pool == "all" else 0
    stats["num_alloc_retries"] = 0
    stats["num_ooms"] = _books.refusals[_devices.index_of(device)]
    return stats


def _nested(flat: Any) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path, value in flat.items():
        *folders, leaf = path.split(".")
        node = tree
        for folder in folders:
            node = node.setdefault(folder, {})
        node[leaf] = value
    return tree


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    return _nested(memory_stats(device))


def host_memory_stats() -> Any:
    return collections.OrderedDict[str, int]()


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    return {}


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    now, most = memory_allocated(device) >> 20, max_memory_allocated(device) >> 20
    return f"emulated npu:{_devices.index_of(device)}: {now} MB held by tensors, {most} MB at most"


def memory_snapshot(mempool_id: Any = None) -> list[Any]:
    return []


def _snapshot(device: Any = None, augment_with_fx_traces: bool = False) -> dict[str, Any]:
    """The form of a snapshot, without allocations."""
    return {"segments": [], "device_traces": [[] for _ in range(_devices.count())], "allocator_settings": {}}


def _dump_snapshot(filename: str = "dump_snapshot.pickle", augment_with_fx_traces: bool = False) -> None:
    with open(filename, "wb") as file:
        pickle.dump(_snapshot(), file)


def _record_memory_history(enabled: Any = "all", *args: Any, **kwargs: Any) -> None:
    """There is no history to keep."""


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """(free, total) bytes."""
    return TOTAL - memory_allocated(device), TOTAL


def get_per_process_memory_fraction(device: Any = None) -> float:
    return _books.fractions.get(_devices.index_of(device), 1.0)


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    if not 0 <= fraction <= 1:
        raise ValueError(f"[emulated npu] a memory fraction lies between 0 and 1, not at {fraction}")
    _books.restrict(fraction, _devices.index_of(device))


def is_initialized() -> bool:
    return True


def empty_cache() -> None:
    """There is no cache."""


empty_virt_addr_cache = host_empty_cache = empty_cache
reset_accumulated_host_memory_stats = reset_peak_host_memory_stats = empty_cache


def get_allocator_backend() -> str:
    return "native"


class MemPool:
    """A pool that holds nothing."""

    _next = 0

    def __init__(self, allocator: Any = None) -> None:
        MemPool._next += 1
        self._id = (0, MemPool._next)
        self.allocator = allocator

    @property
    def id(self) -> tuple[int, int]:
        return self._id

    def use_count(self) -> int:
        return 1

    def snapshot(self) -> list[Any]:
        return []


@contextlib.contextmanager
def use_mem_pool(pool: MemPool, device: Any = None) -> Any:
    yield


def _own_allocator(*args: Any, **kwargs: Any) -> Any:
    raise NotEmulated("[emulated npu] allocators of one's own exist in torch_npu but are not emulated")


NPUPluggableAllocator = change_current_allocator = caching_allocator_alloc = caching_allocator_delete = _own_allocator
