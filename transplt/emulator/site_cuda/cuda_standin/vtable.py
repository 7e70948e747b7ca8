"""Lets PyTorch's C++ find the CUDA that its CPU build lacks.

Its hooks and its guard are C++ objects with an Itanium-ABI vtable (Linux, macOS): the table is copied, and the slots
that are asked get functions of PyTorch's own. Slot numbers are read from the headers of the torch wheel.
"""

from __future__ import annotations

import ctypes
import glob
import os
import re
import sys
from typing import Any

_kept: list[Any] = []


def _slots(*headers: str) -> list[str]:
    names = ["~D1", "~D0"]
    for header in headers:
        with open(header, encoding="utf-8") as file:
            source = re.sub(r"//.*", "", file.read())
        for match in re.finditer(r"virtual\s+([^;{]*?)\(", source):
            name = match.group(1).split()[-1].lstrip("*&")
            if not name.startswith("~") and name not in names:
                names.append(name)
    return names


def _library(root: str, name: str) -> Any:
    return ctypes.CDLL(glob.glob(os.path.join(root, "lib", name + ".*"))[0])


def _hooks(name: str) -> list[str]:
    """The virtual functions of a device's hooks, in the order of their table."""
    import torch

    headers = os.path.join(os.path.dirname(torch.__file__), "include", "ATen", "detail")
    return _slots(os.path.join(headers, "AcceleratorHooksInterface.h"), os.path.join(headers, name))


def _replace(address: int, names: list[str], functions: dict[str, Any]) -> None:
    """Give the C++ object at `address` a table of its own, with some functions replaced."""
    table_address = ctypes.c_void_p.from_address(address).value
    if table_address is None:
        raise ValueError("no table")
    length = len(names) + 2
    table = (ctypes.c_void_p * length)(
        *[ctypes.c_void_p.from_address(table_address - 16 + 8 * i).value for i in range(length)]
    )
    for name, function in functions.items():
        table[2 + names.index(name)] = function
    _kept.append(table)
    ctypes.c_void_p.from_address(address).value = ctypes.addressof(table) + 16


def _root() -> str:
    import torch

    return os.path.dirname(torch.__file__)


def _memory() -> tuple[Any, Any]:
    """Two functions of PyTorch: one that gives the allocator of the CPU, and one that only returns true."""
    allocator = ctypes.cast(_library(_root(), "libc10")._ZN3c1015GetCPUAllocatorEv, ctypes.c_void_p).value
    # Any exported function without arguments that returns true: pinned memory is tracked in Python.
    yes = ctypes.cast(_library(_root(), "libtorch_cpu")._ZN2at28isPrivateUse1HooksRegisteredEv, ctypes.c_void_p).value
    return allocator, yes


def become_cuda() -> None:
    """Let C++ find CUDA: its hooks, which a CPU build leaves as they stand in the header, and its device guard.

    Without them the autograd engine ends the process at the first tensor of type CUDA that needs a gradient. The guard
    is that of PrivateUse1: the place of CUDA in the registry of a CPU build is empty.
    """
    import torch

    if sys.platform not in ("linux", "darwin"):
        raise NotImplementedError("the stand-in for CUDA runs on Linux and macOS only")
    allocator, yes = _memory()
    find = _library(_root(), "libtorch_cpu")._ZN2at6detail12getCUDAHooksEv
    find.restype = ctypes.c_void_p
    asked = dict.fromkeys(("init", "hasCUDA", "hasPrimaryContext", "isBuilt", "isAvailable", "isPinnedPtr"), yes)
    _replace(find(), _hooks("CUDAHooksInterface.h"), {**asked, "getPinnedMemoryAllocator": allocator})
    devices = torch._C._autograd.DeviceType
    registry = ctypes.c_void_p * (int(devices.PrivateUse1) + 1)
    guards = registry.in_dll(_library(_root(), "libc10"), "_ZN3c104impl26device_guard_impl_registryE")
    guards[int(devices.CUDA)] = guards[int(devices.PrivateUse1)]
