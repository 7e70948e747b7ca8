"""DataLoader(pin_memory=True) where torch pins memory for CUDA unless a device is given.

Up to torch 2.6 a loader without pin_memory_device pins only when CUDA is there; from 2.7 on it pins for the current
accelerator and pin_memory_device is being withdrawn (torch/utils/data/dataloader.py; pytorch pull requests 131858
and 158323).
"""

from __future__ import annotations

import ast

from transplt.edits.edit import Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.trees.calls import with_keyword
from transplt.edits.work import Work
from transplt.rules.torch_callables import full_names
from transplt.rules.versions import LAST_CUDA_PINNING
from transplt.syntax.nodes import keyword_of

fixer = Fixer(__name__, code="NPU124", rank=240, versions=f"<={LAST_CUDA_PINNING}", needs=(b"pin_memory",),
              words=("pin_memory",))  # fmt: skip

_API = "torch.utils.data.DataLoader"
_MESSAGE = "DataLoader pins memory for CUDA unless a device is given"


@fixer.on(ast.Call, name=full_names("loads"))
def pins_for_cuda(work: Work, call: ast.Call) -> Finds:
    """Name the NPU in a loader that pins memory."""
    value = keyword_of(call, "pin_memory")
    if value is None or keyword_of(call, "pin_memory_device") is not None:
        return
    if isinstance(value, ast.Constant) and not value.value:
        return
    if not isinstance(value, ast.Constant) or any(keyword.arg is None for keyword in call.keywords):
        help_ = 'pass pin_memory_device="npu" if memory is pinned'
        yield work.note(call, fixer.code, _MESSAGE, api=_API, help=help_)
    elif work.share(call):
        named = with_keyword("pin_memory_device", '"npu"')
        yield Edit(call, fixer.code, _MESSAGE, named, api=_API, writes_npu=True)
