"""A copy of another package in the tree: one remark where it handles NPUs itself, work where it is too old for that."""

from __future__ import annotations

import ast

from transplt.base.finding import Effort, Level
from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work

fixer = Fixer(__name__, code="NPU288", rank=610, needs=(b"__version__",), words=("__version__",))


@fixer.on(ast.Module)
def version_of_the_copy(work: Work, tree: ast.Module) -> Finds:
    """Report at the version of a copy what becomes of it."""
    for copy in work.project.copies:
        if copy.path != work.scan.path:
            continue
        node = next((each for each in tree.body if "__version__" in work.text(each)[:20]), tree.body[0])
        name = f"{copy.package} {copy.version}"
        if copy.handles_npu:
            yield work.note(
                node,
                "NPU288",
                f"this copy of {name} supports NPUs itself and is not changed",
                level=Level.INFO,
                api=copy.package,
                help=f"{copy.package} does since {copy.since}",
            )
        else:
            yield work.note(
                node,
                "NPU289",
                f"this copy of {name} is older than the first version with NPU support",
                api=copy.package,
                help=f"take {copy.package} {copy.since} or newer; until then its code is migrated like your own",
                effort=Effort.MEDIUM,
            )
