"""AdamW with a fused step, which a scaler of torch makes train silently wrong on an NPU.

A fused optimizer is handed the scale, and whether there was an overflow (torch/amp/grad_scaler.py: step). The kernel of
AdamW on an NPU uses neither, so that the step is taken with gradients that are scaled still, and with infinite ones
(op-plugin: FusedAdamWKernelNpuOpApi.cpp; run with torch_npu 2.13). Adam and Adagrad, which the CPU computes, and SGD
look at both.
"""

from __future__ import annotations

import ast

from transplt.base.finding import Level
from transplt.edits.edit import Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.trees.calls import keyword_replaced
from transplt.edits.work import Work
from transplt.fixers.codemods.amp import NPU_SCALERS, SCALERS
from transplt.fixers.codemods.grad_scalers import MOVES, is_type, uses_of
from transplt.program.optimizers import asks_for_fused
from transplt.syntax.nodes import keyword_of

#: Behind what moves the scalers.
fixer = Fixer(__name__, code="NPU161", rank=245, versions=">=2.3", needs=(b"AdamW",), words=("fused",))

_ADAMW = ("torch.optim.AdamW", "torch.optim.adamw.AdamW")
IGNORED = "on an NPU the fused AdamW ignores the scale and the overflows of a GradScaler"


@fixer.on(ast.Call, name=_ADAMW)
def scaled_by_torch(work: Work, call: ast.Call) -> Finds:
    """Write AdamW without its fused step where the file has a scaler of torch; report what cannot be written."""
    if work.settings.style == "portable" or not asks_for_fused(work.file, call):
        return
    moved = [old for old in MOVES if work.rules.builtin.names[old].new not in NPU_SCALERS]
    here = any(not is_type(node) for node, _ in uses_of(work, SCALERS.union(moved)))
    given = keyword_of(call, "fused")
    if here and isinstance(given, ast.Constant) and id(call) not in work.taken - work.shared:
        message = f"AdamW(fused=True) -> fused=False: {IGNORED}"
        yield Edit(call, fixer.code, message, keyword_replaced("fused", "fused", "False"), api=_ADAMW[0])
    elif here or work.project.scales:
        yield work.note(
            call,
            fixer.code,
            f"{IGNORED}, if fused is on and a GradScaler steps it",
            level=Level.MANUAL if here else Level.INFO,
            api=_ADAMW[0],
            help="write fused=False, or use fused only without a GradScaler (bfloat16, float32)",
        )
