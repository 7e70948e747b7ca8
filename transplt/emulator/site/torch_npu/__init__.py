"""Emulated torch_npu: the 'npu' device over CPU memory, in pure Python. This is not Ascend's torch_npu.

It exists so that a migrated script can be run on a machine without an NPU. Names that the chosen torch_npu lacks
raise an error that says so;
names it has that are not emulated raise one that says that instead.
"""

from __future__ import annotations

from typing import Any

import torch
from npu_emulator import names as _names
from npu_emulator.config import config as _config

#: As the real package: the version of the torch it belongs to, here that of the chosen target.
__version__ = _config.torch_version + ".0+emulated"
EMULATED = True

torch.utils.rename_privateuse1_backend("npu")
from . import _engine, npu  # noqa: E402

torch._register_device_module("npu", npu)
torch.utils.generate_methods_for_privateuse1_backend(for_storage=False)
_engine.install()
from . import (  # noqa: E402
    _autocast,
    _collectives,
    _generators,
    _optimizer_state,
    _parallel,
    _patches,
    _profiling,
    _sharing,
    _silent,
    _storages,
)

_patches.install()
_storages.install()
_sharing.install()
_generators.install()
_parallel.install(npu)
_autocast.install()
_collectives.install()
_profiling.install()
_silent.install()
_optimizer_state.install()
from . import _operators, contrib, distributed, optim, profiler, utils  # noqa: E402
from .npu._format import Format  # noqa: E402

_operators.install()
npu._finish()

__all__ = ["Format", "contrib", "distributed", "npu", "optim", "profiler", "utils"]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    operator = _operators.find(name)
    if operator is not None:
        return operator
    raise _names.missing("torch_npu", name)
