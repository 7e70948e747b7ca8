"""Files that are written for the devices of another maker: what they call there is no work for an NPU."""

from __future__ import annotations

import ast
from dataclasses import replace

from transplt.base.finding import Level
from transplt.edits.work import Work
from transplt.rules.packages import other_card
from transplt.syntax.modules import modules_of
from transplt.syntax.scan import parent

#: As `other_card` in rules/support/third_party.json.
_NAMES = (b"torch_xla", b"intel_extension_for_pytorch", b"habana_frameworks")


def leave_other_cards(work: Work) -> None:
    """Turn notes into remarks in a file that imports such a package at its top."""
    if not work.notes or not any(name in work.source.utf8 for name in _NAMES):
        return
    for node in work.scan.imports:
        cards = next(filter(None, map(other_card, modules_of(node))), "")
        if cards and isinstance(parent(node), ast.Module):
            said = f"the file is written for {cards}"
            work.notes = [
                replace(note, level=Level.INFO, effort=None, message=f"{note.message}; {said}")
                if note.level is Level.MANUAL
                else note
                for note in work.notes
            ]
            return
