"""Registers the device: hooks, guard, the boxed fallback kernel and the explicit kernels."""

from __future__ import annotations

import functools
from typing import Any

import torch
from npu_emulator.config import config
from npu_emulator.record import record

from . import composed, devices, layers, memory, sparse, vtable
from .kernel import boxed, hooks
from .kind import KEY

_libraries: list[Any] = []


class _Guard(torch._C._acc.DeviceGuard):
    def type_(self) -> Any:
        return torch._C._autograd.DeviceType.CUDA


class _Hook(torch._C._acc.PrivateUse1Hooks):
    def is_available(self) -> bool:
        return True

    def is_built(self) -> bool:
        return True

    def has_primary_context(self, index: int) -> bool:
        return True


def install() -> None:
    """Make the device one of this process."""
    torch._C._acc.register_python_privateuseone_hook(_Hook())  # vtable uses what it makes true
    torch._C._acc.register_python_privateuseone_device_guard(_Guard())
    vtable.become_cuda()
    devices.make_generators()
    devices.watch_forks(lambda: record.operators)
    # The Python device guard reports one device only; running backward in the calling thread avoids the per-device
    # queues of the autograd engine.
    torch.autograd.set_multithreading_enabled(False)
    fallback = torch.library.Library("_", "IMPL")
    fallback.fallback(boxed, dispatch_key=KEY)
    aten = torch.library.Library("aten", "IMPL")
    _libraries.extend([fallback, aten])
    own = {**memory.kernels(), **layers.kernels(), **composed.kernels()}
    for name, kernel in own.items():
        aten.impl(name, kernel, KEY)
    _take_cpu_kernels_whole(aten, own)
    sparse.install()
    if config.shapes:
        from npu_emulator import shapes

        shapes.install(hooks)


def _take_cpu_kernels_whole(aten: Any, own: dict[str, Any]) -> None:
    """Operators with both a CPU kernel and a composite one: take the CPU kernel, or PyTorch decomposes them."""
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    composite = ("CompositeExplicitAutogradNonFunctional", "CompositeExplicitAutograd", "CompositeImplicitAutograd")
    for full in torch._C._dispatch_get_all_op_names():
        namespace, _, name = full.partition("::")
        if namespace != "aten" or name in own or not has(full, "CPU") or not any(has(full, key) for key in composite):
            continue
        base, _, overload = name.partition(".")
        op = getattr(getattr(torch.ops.aten, base, None), overload or "default", None)
        if op is not None:
            aten.impl(name, functools.partial(boxed, op), KEY)
