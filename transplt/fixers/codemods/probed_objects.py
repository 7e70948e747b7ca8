"""Objects that are asked for an attribute called `cuda`, where nobody could decide what they are.

`hasattr(thing, "cuda")`: after the methods of tensors have been renamed.
"""

from __future__ import annotations

import ast

from transplt.base.finding import Effort
from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.fixers.codemods.probes import MEMBERS, probes_of

fixer = Fixer(__name__, code="NPU233", rank=500)


@fixer.on(ast.Module)
def left_undecided(work: Work, tree: ast.Module) -> Finds:
    kept = {each.extent for each in work.kept}
    for _, _, name in probes_of(work):
        old = str(name.value)
        if old not in MEMBERS or not work.take(name) or work.source.extent(name) in kept:
            continue
        yield work.note(
            name,
            fixer.code,
            f"the code tests an object for the attribute {old!r}",
            help=f"for a tensor or module, write {MEMBERS[old]!r}; otherwise do not change it",
            effort=Effort.LOW,
        )
