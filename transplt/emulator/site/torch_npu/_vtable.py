"""Optional: let PyTorch's C++ ask our Python-registered hook for a pinned-memory allocator.

PyTorch's Python hook class does not forward getPinnedMemoryAllocator. The hook is a C++ object with an Itanium-ABI
vtable
(Linux, macOS): copy the table, and put c10::GetCPUAllocator into that slot. Slot numbers are read from the headers of
the torch wheel. What it buys: DistributedDataParallel with find_unused_parameters or static_graph.
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


def patch(hook: Any) -> bool:
    """Patch the hook's C++ object; False where the platform, a header or a symbol is not as expected."""
    import torch

    if sys.platform not in ("linux", "darwin"):
        return False
    root = os.path.dirname(torch.__file__)
    headers = os.path.join(root, "include", "ATen", "detail")
    try:
        names = _slots(
            os.path.join(headers, "AcceleratorHooksInterface.h"), os.path.join(headers, "PrivateUse1HooksInterface.h")
        )
        allocator_slot, pinned_slot = names.index("getPinnedMemoryAllocator"), names.index("isPinnedPtr")
        allocator = ctypes.cast(_library(root, "libc10")._ZN3c1015GetCPUAllocatorEv, ctypes.c_void_p).value
        # Any exported function without arguments that returns true: pinned memory is tracked in Python.
        yes = ctypes.cast(_library(root, "libtorch_cpu")._ZN2at28isPrivateUse1HooksRegisteredEv, ctypes.c_void_p).value
    except (OSError, ValueError, IndexError, AttributeError):
        return False
    address = ctypes.c_void_p.from_address(id(hook) + 16).value  # pybind11 instance: simple_value_holder[0]
    if address is None:
        return False
    table_address = ctypes.c_void_p.from_address(address).value
    if table_address is None:
        return False
    length = len(names) + 2
    table = (ctypes.c_void_p * length)(
        *[ctypes.c_void_p.from_address(table_address - 16 + 8 * i).value for i in range(length)]
    )
    table[2 + allocator_slot] = allocator
    table[2 + pinned_slot] = yes
    _kept.append(table)
    ctypes.c_void_p.from_address(address).value = ctypes.addressof(table) + 16
    return True
