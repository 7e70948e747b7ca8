"""DataLoader(pin_memory=True) where torch pins memory for CUDA unless it is told a device.

Up to torch 2.6 a loader without pin_memory_device pins only when CUDA is there; from 2.7 on it pins for the current
accelerator and pin_memory_device is being withdrawn (torch/utils/data/dataloader.py; pytorch pull requests 131858
and 158323).
"""

from __future__ import annotations

import ast

from transplt.codemods.call_edits import keyword_of, with_keyword
from transplt.edits.rewrite import Change
from transplt.edits.work import Work
from transplt.rules.rule import versions_of
from transplt.rules.rule_set import LAST_CUDA_PINNING

LOADERS = frozenset({"torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader"})


def plan(work: Work) -> None:
    """Name the NPU in loaders that pin memory, for the versions of torch that need it."""
    if b"pin_memory" not in work.source.utf8:
        return
    if work.settings.torch_version not in versions_of(f"<={LAST_CUDA_PINNING}"):
        return
    for call in work.scan.calls:
        value = keyword_of(call, "pin_memory")
        if value is None or keyword_of(call, "pin_memory_device") is not None:
            continue
        if isinstance(value, ast.Constant) and not value.value:
            continue
        if work.names.qualified(call.func) not in LOADERS:
            continue
        if isinstance(value, ast.Constant) and all(k.arg is not None for k in call.keywords):
            if work.take(call):
                message = "DataLoader pins memory for CUDA unless told a device"
                transform = with_keyword("pin_memory_device", '"npu"')
                work.changes.append(
                    Change(call, "NPU124", message, transform, api="torch.utils.data.DataLoader", writes_npu=True)
                )
        else:
            work.note(
                call,
                "NPU124",
                "DataLoader pins memory for CUDA unless told a device",
                api="torch.utils.data.DataLoader",
                help='pass pin_memory_device="npu" where memory is pinned',
            )
