"""What a proof showed not to hold, of what was asked for or of the migration: noted in the script that was run."""

from __future__ import annotations

import ast

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work

fixer = Fixer(__name__, code="NPU793", rank=600)


@fixer.on(ast.Module)
def proof_of_the_script(work: Work, tree: ast.Module) -> Finds:
    """One finding for each theme that was left out, else (theme "") for all of it, at the first statement."""
    for theme, path, proof in work.settings.taken_back:
        if path == work.scan.path and tree.body:
            message = f"{theme} was undone: {proof}" if theme else f"the proof failed: {proof}"
            yield work.note(tree.body[0], fixer.code, message, help="read what the proof reports, then try again")
