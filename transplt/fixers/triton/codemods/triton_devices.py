"""What host code asks Triton's driver: the device that is active, and how many processors it has.

Source: triton-ascend, docs/en/migration_guide/migrate_from_gpu.md (the device), third_party/ascend/backend/driver.py
(`get_device_properties`: num_aicore, num_vectorcore and max_shared_mem). `get_active_torch_device` came after
triton-ascend 3.2.
"""

from __future__ import annotations

import ast

from transplt.edits.edit import Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.fixers.triton.reader.kernels import behind
from transplt.syntax.nodes import string_of

fixer = Fixer(__name__, code="NPU562", needs=(b"triton",), words=("triton",))

_DRIVER = ("triton.runtime.driver.active", "triton.runtime.driver.driver.active", "triton.runtime.active")
_ACTIVE = tuple(f"{driver}.get_active_torch_device" for driver in _DRIVER)
_PROPERTIES = tuple(f"{driver}.utils.get_device_properties" for driver in _DRIVER)
_NPU = 'torch.device("npu", torch.npu.current_device())'
_KNOWN = frozenset({"num_aicore", "num_vectorcore", "max_shared_mem"})
_CORES = frozenset({"multiprocessor_count", "multi_processor_count", "num_sm"})
_HELP = (
    '["num_vectorcore"] for kernels without tl.dot, ["num_aicore"] for kernels with it: launch that many programs, '
    'each looping over its blocks'
)


@fixer.on(ast.Call, name=_ACTIVE)
def active_device(work: Work, call: ast.Call) -> Finds:
    """The device of the process, by torch: the same device, under a name that every release has."""
    if work.settings.style == "portable" or call.args or call.keywords:
        return
    torch = next((name for name, found in work.scan.root.bindings.items()
                  if found[0].kind == "import" and found[0].target == "torch"), "")  # fmt: skip
    message = "triton-ascend 3.2 has no get_active_torch_device: torch names the same device"
    if torch == "torch" and work.take(call):
        yield Edit(call, fixer.code, message, _NPU, api="triton.runtime.driver.active.get_active_torch_device",
                   writes_npu=True)  # fmt: skip
    elif work.take(call):
        yield work.note(call, fixer.code, message, api="triton.runtime.driver.active.get_active_torch_device",
                        help=_NPU, blocks="first step")  # fmt: skip


@fixer.on(ast.Subscript)
def properties(work: Work, node: ast.Subscript) -> Finds:
    """Keys of the properties that the driver for NPUs does not have."""
    key = string_of(node.slice)
    if key is None or key in _KNOWN or not isinstance(node.ctx, ast.Load):
        return
    value = behind(work.file, node.value)
    if not isinstance(value, ast.Call) or work.names.qualified(value.func) not in _PROPERTIES or not work.take(node):
        return
    cores = key in _CORES
    yield work.note(
        node, fixer.code,
        f"Triton's driver for NPUs has no property {key}, so this raises KeyError",
        api="triton.runtime.driver.active.utils.get_device_properties", blocks="first step",
        help=_HELP if cores else 'it has "num_aicore", "num_vectorcore" and "max_shared_mem" (which is 1)',
    )  # fmt: skip
