"""Operators that are given a type of tensors which the card refuses (program/refused_types.py)."""

from __future__ import annotations

import ast

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.program.refused_types import NEEDS, refused_in
from transplt.rules.card_limits import card_named, card_title, limit_text

_WORDS = ("view_as_complex", "torch.polar", "torch.complex", "torch.fft", "cfloat", "cdouble", "torch.uint16")
fixer = Fixer(__name__, code="NPU137", rank=264, needs=NEEDS, words=_WORDS)
_COMPLEX_INDEX = (
    "index torch.view_as_real(...) and convert the result with torch.view_as_complex, or compute this on the CPU"
)
_COMPLEX = "compute this from the real and imaginary parts, which are float32 tensors, or on the CPU"


@fixer.on(ast.Module)
def refused(work: Work, tree: ast.Module) -> Finds:
    """Report each place where an operator is given a type that the card of the settings refuses."""
    card = card_named(work.settings.hardware)
    ran = frozenset(work.settings.own_card)
    for each in refused_in(work.file, work.project, card) if card else ():
        if {(f"aten::{each.operator}", dtype) for dtype in each.dtypes} <= ran:
            continue  # whatever the source says, the user's own card did it
        text = limit_text("operator")
        dtype = " or ".join(sorted(each.dtypes))
        message = text.message.format(name=each.name, dtype=dtype, card=card_title(card))
        listed = f"takes {', '.join(each.row.takes)}" if each.row.takes else "refuses it"
        of_parts = _COMPLEX_INDEX if each.operator == "index.Tensor" else _COMPLEX
        yield work.note(
            each.node,
            fixer.code,
            f"{message}: {each.row.function} {listed}",
            api=each.name,
            help=of_parts if each.complex else text.help,
        )
