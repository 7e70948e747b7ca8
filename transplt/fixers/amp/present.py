"""Programs that have mixed precision already: that is reported, and nothing is added to them."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from transplt.base.finding import Level
from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.fixers.amp.amp_writer import wanted
from transplt.fixers.amp.recognise import already, found_in
from transplt.fixers.amp.training_units import find_units

fixer = Fixer(__name__, code="NPU742", rank=50, theme="amp")
#: What Ascend's build of apex has: who asks for `--amp apex` has that build.
_OF_ASCEND = re.compile(r"apex(?:\.amp|\.parallel\.LARC|\.optimizers\.Npu\w+)?")


@fixer.on(ast.Module)
def has_mixed_precision(work: Work, tree: ast.Module) -> Finds:
    """At the place that gives it or, for another file's, where the program trains."""
    for at, note in enumerate(work.notes if work.settings.amp == "apex" else ()):
        if note.code == "NPU511" and _OF_ASCEND.fullmatch(note.api):
            work.notes[at] = replace(note, level=Level.INFO, effort=None)
    trains = b".backward(" in work.source.utf8
    found = (work.once(already) if trains else found_in(work.scan, work.names)) if wanted(work) else None
    if found is None:
        return
    node, there = found.node, ""
    if found.path != work.scan.path:
        units = find_units(work)
        if not units:
            return
        node, there = units[0].first, f" in {found.path}"
    yield work.note(
        node,
        fixer.code,
        f"this program already has mixed precision ({found.what}{there}): nothing is added",
        level=Level.INFO,
        help=f"precision is set by {found.where}" if found.where else "",
    )
