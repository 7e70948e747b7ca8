"""The names that `torch._C` has in a CUDA build and lacks in a CPU build. `torch.cuda` and `torch.accelerator` are
PyTorch's own Python on top of them."""

from __future__ import annotations

import enum
from types import ModuleType, SimpleNamespace
from typing import Any

from npu_emulator.config import visible_cards
from npu_emulator.host_memory import growth, peak, reset_peak

from . import streams

#: The card that the stand-in reports as its own, after NVIDIA's data sheet of the A100 80 GB.
NAME, CAPABILITY, MEMORY, PROCESSORS = "NVIDIA A100-SXM4-80GB (emulated on CPU)", (8, 0), 80 << 30, 108
#: CUDA 12.8 and cuDNN 9.10, as the wheels of the newest PyTorch have them.
CUDA_VERSION, CUDNN_VERSION = 12080, 91002
_settings: dict[str, Any] = {"sync": 0, "benchmark_limit": 10, "fraction": {}}


def count() -> int:
    """How many cards there are: as asked for, less those that CUDA_VISIBLE_DEVICES hides."""
    return visible_cards("CUDA_VISIBLE_DEVICES")


def _devices() -> Any:
    from . import devices

    return devices


def _get_device() -> int:
    return int(_devices().state.device)


def _set_device(index: int) -> None:
    if not 0 <= index < count():
        raise RuntimeError("CUDA error: invalid device ordinal")
    _devices().state.device = index


def _exchange_device(index: int) -> int:
    previous = _get_device()
    if index >= 0:
        _set_device(index)
    return previous


def _init() -> None:
    import torch

    if not count():
        raise RuntimeError("No CUDA GPUs are available")
    torch.cuda.default_generators = tuple(_devices().generators[: count()])
    torch.cuda._get_device_properties = Properties  # type: ignore[assignment]


class Properties:
    """What torch.cuda.get_device_properties gives."""

    def __init__(self, index: int) -> None:
        if not 0 <= index < count():
            raise AssertionError("Invalid device id")
        self.name, self.total_memory, self.multi_processor_count = NAME, MEMORY, PROCESSORS
        self.major, self.minor = CAPABILITY
        self.is_integrated = self.is_multi_gpu_board = 0
        self.max_threads_per_multi_processor, self.max_threads_per_block, self.warp_size = 2048, 1024, 32
        self.regs_per_multiprocessor, self.shared_memory_per_multiprocessor = 65536, 167936
        self.shared_memory_per_block, self.shared_memory_per_block_optin = 49152, 166912
        self.L2_cache_size, self.gcnArchName, self.uuid = 40 << 20, "", f"00000000-0000-0000-0000-{index:012d}"
        self.clock_rate, self.memory_clock_rate, self.memory_bus_width = 1410000, 1593000, 5120
        self.pci_bus_id, self.pci_device_id, self.pci_domain_id = index + 1, 0, 0

    def __repr__(self) -> str:
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory >> 20}MB, multi_processor_count={self.multi_processor_count})"
        )


_BYTES = ("allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes", "requested_bytes")
_COUNTS = ("allocation", "segment", "active", "inactive_split")
_POOLS = ("all", "small_pool", "large_pool")


def _memory_stats(index: int) -> dict[str, Any]:
    """Bytes: what the host process grew by since torch was imported; no GPU's figure."""
    now, most = growth(), peak()
    full = {"current": now, "peak": most, "allocated": most, "freed": most - now}
    empty = dict.fromkeys(full, 0)
    stats: dict[str, Any] = {
        name: {pool: dict(full if name in _BYTES[:3] and pool != "small_pool" else empty) for pool in _POOLS}
        for name in (*_BYTES, *_COUNTS)
    }
    stats["oversize_allocations"] = stats["oversize_segments"] = dict(empty)
    stats["num_alloc_retries"] = stats["num_ooms"] = stats["num_sync_all_streams"] = 0
    stats["num_device_alloc"] = stats["num_device_free"] = 0
    stats["max_split_size"] = -1
    return stats


def _mem_get_info(index: int) -> tuple[int, int]:
    return MEMORY - growth(), MEMORY


class _CudaError(int):
    """A result of the runtime."""

    success = 0


class _Cudart(ModuleType):
    """What torch.cuda.cudart() gives."""

    cudaError = _CudaError

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return {"cudaMemGetInfo": _mem_get_info, "cudaGetErrorString": lambda code: f"CUDA error {code}"}.get(
            name, lambda *args: 0
        )


class _Ranges(ModuleType):
    """torch._C._nvtx: ranges are counted, and go nowhere."""

    depth = 0

    def rangePushA(self, message: str) -> int:
        self.depth += 1
        return self.depth - 1

    def rangePop(self) -> int:
        self.depth -= 1
        return self.depth

    def rangeStartA(self, message: str) -> int:
        return 1

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args: None


class Graph:
    """torch._C._CUDAGraph: capturing what was given to a stream."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("[emulated cuda] CUDA graphs are not emulated")


class Pool:
    """torch._C._MemPool: a pool that holds nothing."""

    _last = 0

    def __init__(self, allocator: Any = None, *options: bool) -> None:
        Pool._last += 1
        self._id, self._allocator = (0, Pool._last), allocator

    @property
    def id(self) -> tuple[int, int]:
        return self._id

    @property
    def allocator(self) -> Any:
        return self._allocator

    def use_count(self) -> int:
        return 1


class _Accelerator(enum.Enum):
    """Nothing but the name of the device, for `torch.accelerator`."""

    TYPE = "cuda"


def _accelerator(check: Any = None) -> Any:
    import torch

    return torch.device(_Accelerator.TYPE.value) if count() or not check else None


def _index(device: Any) -> int:
    return _get_device() if device is None or device < 0 else int(device)


def _nothing(*args: Any, **kwargs: Any) -> None:
    """Without effect where everything has run when a call returns."""


def _capability(index: int) -> dict[str, Any]:
    import torch

    return {"supported_dtypes": {v for v in vars(torch).values() if isinstance(v, torch.dtype)}}


def names() -> dict[str, Any]:
    """Name in torch._C -> what it is here."""
    plain = SimpleNamespace(**_settings)

    def set_plain(name: str) -> Any:
        return lambda value: setattr(plain, name, value)

    def get_plain(name: str) -> Any:
        return lambda: getattr(plain, name)

    accelerator = {
        "getAccelerator": _accelerator, "getDeviceIndex": _get_device, "setDeviceIndex": _set_device,
        "getStream": streams.current, "setStream": streams.set_current, "synchronizeDevice": _nothing,
        "exchangeDevice": _exchange_device, "maybeExchangeDevice": _exchange_device,
        "isAllocatorInitialized": lambda: True, "emptyCache": _nothing, "emptyHostCache": _nothing,
        "getDeviceStats": _memory_stats, "resetAccumulatedStats": lambda index: reset_peak(),
        "resetPeakStats": lambda index: reset_peak(), "getMemoryInfo": _mem_get_info,
        "getDeviceCapability": _capability,
    }  # fmt: skip
    cuda = {
        "init": _init, "getDeviceCount": count, "getDevice": _get_device, "setDevice": _set_device,
        "exchangeDevice": _exchange_device, "maybeExchangeDevice": _exchange_device,
        "isInBadFork": lambda: bool(_devices().forked), "hasPrimaryContext": lambda index: True,
        "synchronize": _nothing, "sleep": _nothing, "ipc_collect": _nothing, "emptyCache": _nothing,
        "clearCublasWorkspaces": _nothing, "getCurrentBlasHandle": lambda: 0, "getCurrentSolverHandle": lambda: 0,
        "getCompiledVersion": lambda: CUDA_VERSION, "getArchFlags": lambda: "sm_80",
        "canDeviceAccessPeer": lambda a, b: a != b,
        "getCurrentStream": streams.current_triple, "getDefaultStream": streams.default_triple,
        "getStreamFromExternal": streams.external_triple, "setStream": streams.set_triple,
        "getCurrentRawStream": lambda index: 0, "isCurrentStreamCapturing": lambda: False,
        "memoryStats": _memory_stats, "hostMemoryStats": dict, "memorySnapshot": lambda *given: {
            "segments": [], "device_traces": [[] for _ in range(count())], "allocator_settings": {}},
        "resetAccumulatedMemoryStats": lambda index: reset_peak(), "resetPeakMemoryStats": lambda index: reset_peak(),
        "resetAccumulatedHostMemoryStats": _nothing, "resetPeakHostMemoryStats": _nothing,
        "setMemoryFraction": lambda fraction, index: plain.fraction.__setitem__(_index(index), fraction),
        "getMemoryFraction": lambda index: plain.fraction.get(_index(index), 1.0),
        "getAllocatorBackend": lambda: "native", "record_memory_history": _nothing,
        "record_memory_history_legacy": _nothing, "cudaCachingAllocator_is_enabled": lambda: True,
        "cudaCachingAllocator_enable": _nothing, "beginAllocateToPool": _nothing,
        "beginAllocateCurrentThreadToPool": _nothing, "endAllocateToPool": _nothing, "releasePool": _nothing,
        "set_sync_debug_mode": set_plain("sync"), "get_sync_debug_mode": get_plain("sync"),
        "set_cudnn_benchmark_limit": set_plain("benchmark_limit"),
        "get_cudnn_benchmark_limit": get_plain("benchmark_limit"),
    }  # fmt: skip
    return {
        **{"_cuda_" + name: value for name, value in cuda.items()},
        **{"_accelerator_" + name: value for name, value in accelerator.items()},
        "_get_accelerator": _accelerator,
        "_CUDAGraph": Graph,
        "_MemPool": Pool,
        "_graph_pool_handle": lambda: (0, 1),
        "_CudaDeviceProperties": Properties,
        "_CudaStreamBase": streams.StreamBase,
        "_CudaEventBase": streams.EventBase,
        "_cudart": _Cudart("torch._C._cudart"),
        "_nvtx": _Ranges("torch._C._nvtx"),
        "_has_cuda": True,
    }


def install(torch_c: ModuleType) -> None:
    """Set the names, right after torch._C was imported and before `torch.cuda` is."""
    vars(torch_c).update(names())
