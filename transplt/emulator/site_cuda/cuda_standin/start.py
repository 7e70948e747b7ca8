"""Prepares a process: the names of `torch._C` before `torch.cuda` needs them, the device once torch is there."""

from __future__ import annotations

import os
from types import ModuleType

from npu_emulator import lines, record
from npu_emulator.config import config
from npu_emulator.start import find_imports, judge_triton, when_imported


def _torch_is_there(torch: ModuleType) -> None:
    from npu_emulator import dump, saves, stubs, trace

    from . import composed, engine, generators, parallel, patches, profiling, sharing, storages, tensors

    engine.install()
    composed.install_composed()
    for part in (patches, storages, sharing, generators, parallel, profiling, tensors):
        part.install()
    when_imported("torch.distributed.distributed_c10d", _distributed_is_there)
    if config.saves:
        saves.install()
    trace.install()
    dump.install()
    stubs.load()


def _distributed_is_there(distributed: ModuleType) -> None:
    from . import nccl

    nccl.install()


_prepared = False


def prepare() -> None:
    """Give `torch._C` what `torch.cuda` asks it for when it is imported: all that has to be there before torch."""
    from . import runtime

    global _prepared
    if not _prepared:
        _prepared = True
        find_imports()
        when_imported("torch._C", runtime.install)


def begin() -> None:
    """Called once per process, before anything of the user's runs."""
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"  # a real torch_npu beside us must not load itself
    prepare()
    os.environ["TRITON_INTERPRET"] = "1"
    judge_triton()
    when_imported("torchvision", lambda module: None)
    when_imported("torch", _torch_is_there)
    record.install()
    lines.install()
