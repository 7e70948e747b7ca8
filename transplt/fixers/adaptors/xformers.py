"""`attention`: the attention of xformers and what public code uses beside it come from the project's own functions.

Which names those are says rules/support/taken_over.json.
"""

from __future__ import annotations

import ast

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.fixers.adaptors.package import turn_package
from transplt.fixers.adaptors.package_probes import turn_probes
from transplt.fixers.adaptors.writer import writer_for
from transplt.rules.taken_over import packages

fixer = Fixer(__name__, code="NPU873", rank=-89, theme="adapt:attention", needs=(b"xformers",), value="(?:package)?",
              example="package")  # fmt: skip


@fixer.on(ast.Module)
def attention_of_xformers(work: Work, tree: ast.Module) -> Finds:
    """Take from the helper what a file takes from xformers."""
    writer = writer_for(work, fixer)
    if writer is not None:
        package = packages()["xformers"]
        turned = turn_package(writer, package, fixer.code, ("NPU510",))
        turn_probes(writer, package, fixer.code, turned=turned)
        yield from writer.found
