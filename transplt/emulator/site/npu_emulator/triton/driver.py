"""What launch code asks Triton's driver: the device, its cores, its name. Triton's own finds no GPU here.

Names and answers after third_party/ascend/backend/driver.py of triton-ascend and the driver of NVIDIA.
"""

from __future__ import annotations

from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver as _config

from npu_emulator import DEVICE
from npu_emulator.record import record

from . import limits

#: What a card of unknown cores answers: those of the 910B2.
_CORES = {"cube_cores": 24, "vector_cores": 48}
#: After NVIDIA's data sheet of the A100, as the rest of the stand-in.
_GPU = {
    "max_shared_mem": 166912, "max_num_regs": 65536, "multiprocessor_count": 108, "warpSize": 32,
    "sm_clock_rate": 1410000, "mem_clock_rate": 1593000, "mem_bus_width": 5120,
}  # fmt: skip


class _Utils:
    """`driver.active.utils`."""

    def get_device_properties(self, device: Any = None) -> dict[str, int]:
        """`num_vectorcore` and `num_aicore` of a card, as triton-ascend; those of an A100 on the stand-in."""
        if not limits.ENFORCED:
            return dict(_GPU)
        cores = {"num_aicore": self.get_aicore_num(), "num_vectorcore": self.get_aivector_core_num()}
        return {"max_shared_mem": 1, **cores}

    def get_aicore_num(self) -> int:
        return _cores("cube_cores")

    def get_aivector_core_num(self) -> int:
        return _cores("vector_cores")

    def get_arch(self) -> str:
        return str(limits.card()["arch"])


def _cores(name: str) -> int:
    known = int(limits.card()[name])
    if not known:
        record.note("the cores of this card are not known: Triton was told those of an Ascend 910B2")
    return known or _CORES[name]


class Driver:
    """`triton.runtime.driver.active`."""

    def __init__(self) -> None:
        self.utils = _Utils()

    def get_current_target(self) -> Any:
        return GPUTarget("npu", self.utils.get_arch(), 0) if limits.ENFORCED else GPUTarget("cuda", 80, 32)

    def get_device_interface(self) -> Any:
        return getattr(torch, DEVICE)

    def get_current_device(self) -> int:
        return int(self.get_device_interface().current_device())

    def set_current_device(self, device: int) -> None:
        self.get_device_interface().set_device(device)

    def get_active_torch_device(self) -> Any:
        return torch.device(DEVICE, self.get_current_device())

    def get_current_stream(self, device: Any = None) -> int:
        return 0

    def get_device_capability(self, device: Any = None) -> tuple[int, int]:
        return (8, 0)

    def get_benchmarker(self) -> Any:
        from triton.testing import do_bench

        return do_bench

    def get_empty_cache_for_benchmark(self) -> Any:
        return torch.empty(1 << 20, dtype=torch.int8, device=DEVICE)

    def clear_cache(self, cache: Any) -> None:
        """Nothing is cached."""

    def assemble_tensormap_to_arg(self, *args: Any) -> Any:
        raise NotImplementedError("tensor maps of a GPU are not emulated")


def install() -> None:
    """Be the driver."""
    active = Driver()
    _config._default = _config._active = active
    _config.set_active(active)
