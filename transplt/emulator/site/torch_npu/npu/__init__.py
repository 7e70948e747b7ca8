"""torch.npu: the device module. Everything it runs is synchronous, so streams and events only keep their books."""

from __future__ import annotations

import itertools
import os
import re
import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch
from npu_emulator import names as _names
from npu_emulator.config import config as _run
from npu_emulator.config import version_key as _version_key
from npu_emulator.limits import card_name as _card_name

from .. import _devices, _legacy, _limits

default_generators = _devices.generators
_initialized = True


def init() -> None:
    """Nothing to initialise."""


_lazy_init = init


def _lazy_call(callback: Callable[[], Any], **kwargs: Any) -> None:
    callback()


def is_initialized() -> bool:
    return True


def _is_in_bad_fork() -> bool:
    return _devices.forked


def is_available() -> bool:
    return _devices.count() > 0


def device_count() -> int:
    return _devices.count()


def current_device() -> int:
    return int(_devices.state.device)


def set_device(device: Any) -> None:
    """Make `device` (int, "npu:1", torch.device) the current one of this thread."""
    index = _devices.index_of(device)
    _devices.check_index(index)
    _devices.state.device = index


def _parse_visible_devices() -> list[int]:
    """The numbers that ASCEND_RT_VISIBLE_DEVICES names up to the first wrong one; without it more than there are."""
    visible = os.environ.get("ASCEND_RT_VISIBLE_DEVICES")
    if visible is None:
        return list(range(64))
    words = [word.strip() for word in visible.split(",")]
    return [int(word) for word in itertools.takewhile(str.isdigit, words)]


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    return _devices.index_of(device)


def _get_device(device: Any) -> Any:
    return torch.device("npu", _devices.index_of(device))


def _get_generator(device: Any) -> Any:
    return _devices.generators[_devices.index_of(device)]


def _exchange_device(index: int) -> int:
    previous = current_device()
    if index >= 0:
        _devices.state.device = index
    return previous


_maybe_exchange_device = _exchange_device


class device:
    """Makes another npu the current one inside a `with` block; may be nested in itself."""

    def __init__(self, device: Any) -> None:
        self.idx = _devices.index_of(device)
        self._outer: list[int] = []

    def __enter__(self) -> None:
        self._outer.append(_exchange_device(self.idx))

    def __exit__(self, *exc: Any) -> bool:
        _exchange_device(self._outer.pop())
        return False


class device_of(device):
    """The device of a tensor or storage, if it is an npu."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.device.index if obj.device.type == "npu" else -1)


def synchronize(device: Any = None) -> None:
    """Everything already ran."""
    _devices.check_index(_devices.index_of(device))


def get_device_name(device_name: Any = None) -> str:
    return f"{_card_name()} (emulated on CPU)"


class _DeviceProperties:
    def __init__(self, index: int) -> None:
        self.name = get_device_name(index)
        self.total_memory = memory.TOTAL
        self.major, self.minor, self.multi_processor_count = 0, 0, 0
        self.cube_core_num, self.vector_core_num, self.L2_cache_size, self.uuid = 24, 48, 192 << 20, ""

    def __repr__(self) -> str:
        return f"_NPUDeviceProperties(name='{self.name}', total_memory={self.total_memory >> 20}MB)"


def get_device_properties(device_name: Any = None) -> _DeviceProperties:
    return _DeviceProperties(_devices.index_of(device_name))


def get_device_capability(device: Any = None) -> tuple[int, int] | None:
    """None, with a warning; from torch 2.7 on TORCH_NPU_DEVICE_CAPABILITY ("8.0") if set, which is no truth either.

    Source: torch_npu/npu/__init__.py.
    """
    given = os.environ.get("TORCH_NPU_DEVICE_CAPABILITY", "") if _version_key(_run.torch_version) >= (2, 7) else ""
    match = re.fullmatch(r"(\d+)\.(\d+)", given)
    if match is None:
        _limits.report_call("torch.cuda.get_device_capability")
    warnings.warn(
        "The return value of get_device_capability is only for compatibility with PyTorch and does not represent the "
        "actual capability of the NPU device.",
        stacklevel=2,
    )
    return (int(match[1]), int(match[2])) if match is not None else None


def can_device_access_peer(device_id: Any, peer_device_id: Any) -> bool:
    _devices.check_index(_devices.index_of(device_id))
    _devices.check_index(_devices.index_of(peer_device_id))
    return device_id != peer_device_id


def utilization(device: Any = None) -> int:
    return 0


def _sleep(cycles: int) -> None:
    """A wait on the stream: nothing waits here."""


def is_bf16_supported(including_emulation: bool = False) -> bool:
    return True


def get_amp_supported_dtype() -> list[Any]:
    return [torch.float16, torch.bfloat16, torch.float32]


def is_autocast_enabled() -> bool:
    return bool(torch.is_autocast_enabled("npu"))


def set_autocast_enabled(enabled: bool) -> None:
    torch.set_autocast_enabled("npu", enabled)


def get_autocast_dtype() -> Any:
    return torch.get_autocast_dtype("npu")


def set_autocast_dtype(dtype: Any) -> None:
    torch.set_autocast_dtype("npu", dtype)


class _Hf32:
    """torch.npu.matmul and torch.npu.conv: their switch is kept, and changes nothing here."""

    def __init__(self, allow_hf32: bool) -> None:
        self.allow_hf32 = allow_hf32


class _Config:
    """torch.npu.config."""

    allow_internal_format = False


class _Npurt:
    """What torch.npu.npurt() gives: the runtime's profiler calls."""

    @staticmethod
    def npuProfilerStart() -> int:
        return 0

    npuProfilerStop = npuProfilerStart


def npurt() -> _Npurt:
    return _Npurt()


matmul, conv, config = _Hf32(False), _Hf32(True), _Config()


globals().update(_legacy.types())

from . import _memory_viz, amp, backends, graphs, memory, npu_config, random, streams, utils  # noqa: E402,F401
from .graphs import *  # noqa: E402,F403
from .memory import *  # noqa: E402,F403
from .mstx import mstx as mstx  # noqa: E402
from .npu_config import *  # noqa: E402,F403
from .random import *  # noqa: E402,F403
from .streams import *  # noqa: E402,F403
from .utils import *  # noqa: E402,F403

for _name in (
    "enable_flash_sdp",
    "enable_math_sdp",
    "enable_mem_efficient_sdp",
    "flash_sdp_enabled",
    "math_sdp_enabled",
    "mem_efficient_sdp_enabled",
    "preferred_linalg_library",
    "sdp_kernel",
):
    globals()[_name] = getattr(backends, _name)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise _names.missing("torch_npu.npu", name)


def _finish() -> None:
    """Let torch.npu.* and torch_npu.npu.* be the same modules, without the names the chosen version lacks."""
    own = __name__
    for path, module in list(sys.modules.items()):
        if path == own or path.startswith(own + "."):
            _names.hide(path, vars(module))
            sys.modules["torch.npu" + path[len(own) :]] = module
            if path != own and "__getattr__" not in vars(module):
                vars(module)["__getattr__"] = _lookup(path)


def _lookup(path: str) -> Callable[[str], Any]:
    def missing(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise _names.missing(path, name)

    return missing
