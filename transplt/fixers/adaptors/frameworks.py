"""`frameworks`: options of trainers that stop on an NPU, where another value means the same computation.

Source: transformers 4.32 to 5.24, trainer_optimizer.py and training_args.py.
"""

from __future__ import annotations

import ast

from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.edits.writer import on_file
from transplt.fixers.adaptors.writer import AdaptorWriter, writer_for

fixer = Fixer(__name__, code="NPU879", rank=-100, theme="adapt:frameworks", needs=(b"adamw_apex_fused",))

_ANSWERS = ("NPU144",)
#: `optim` of TrainingArguments: apex's FusedAdam is AdamW of torch, with a kernel for CUDA.
_SAME = {"adamw_apex_fused": "adamw_torch"}


@on_file(fixer, writer_for)
def options_of_trainers(work: Work, writer: AdaptorWriter) -> None:
    """Give `optim=` the name of the same optimizer without apex."""
    for keyword in (each for call in work.scan.calls for each in call.keywords if each.arg == "optim"):
        value = keyword.value
        new = _SAME.get(value.value) if isinstance(value, ast.Constant) and isinstance(value.value, str) else None
        if new is None or not work.take(value):
            continue
        quote = work.text(value)[-1]
        message = f"optim {work.text(value)} -> {new}"
        writer.rewrite(value, fixer.code, message, f"{quote}{new}{quote}", api="transformers")
        if not writer.keeps(value, fixer.code):
            writer.takes_care(keyword, _ANSWERS)
