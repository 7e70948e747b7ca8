"""`timm`: the loss scaler of timm, which makes that of CUDA, comes from the project's own functions.

Source: timm 1.0, timm/utils/cuda.py.
"""

from __future__ import annotations

import ast

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.fixers.adaptors.writer import turn_names, writer_for

fixer = Fixer(__name__, code="NPU871", rank=-100, theme="adapt:timm", needs=(b"timm",))

_FROM_HELPER = {
    f"{module}.{name}": "NativeScaler"
    for module in ("timm.utils", "timm.utils.cuda")
    for name in ("NativeScaler",)
}


@fixer.on(ast.Module)
def scalers_of_timm(work: Work, tree: ast.Module) -> Finds:
    """Take the scaler from the helper."""
    writer = writer_for(work, fixer)
    if writer is not None:
        turn_names(writer, _FROM_HELPER, fixer.code, ("NPU148", "NPU149"))
        yield from writer.found
