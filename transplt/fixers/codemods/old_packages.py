"""Programs that insist on a version of a package in which it cannot run beside torch_npu.

timm before 0.4.5 imports torch._six (timm/models/layers/helpers.py), which torch 2.0 no longer has; before 0.5.4 its
Mixup makes soft targets on CUDA (timm/data/mixup.py: `mixup_target(..., device='cuda')`). The remark at the import of
Mixup is in rules/libraries.json.
"""

from __future__ import annotations

import ast
import re

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.rules.packages import numbers_of
from transplt.syntax.scan import parent

fixer = Fixer(__name__, code="NPU515", rank=350, needs=(b"__version__",))

#: The package -> versions below which it fails, with what is wrong, the worst first.
_FAILS: dict[str, tuple[tuple[tuple[int, ...], str], ...]] = {
    "timm": (
        ((0, 4, 5), "cannot be imported with torch 2"),
        ((0, 5, 4), "creates the targets of its Mixup on CUDA"),
    )
}
_VERSION = re.compile(r"\d+(?:\.\d+)*")


@fixer.on(ast.Compare)
def version_insisted_on(work: Work, compare: ast.Compare) -> Finds:
    """Report a comparison such as `timm.__version__ == "0.3.2"` that is asserted."""
    match compare:
        case ast.Compare(
            left=ast.Attribute(value=ast.Name() as name, attr="__version__"),
            ops=[ast.Eq()],
            comparators=[ast.Constant(value=str() as wanted)],
        ):
            package = work.names.qualified(name) or ""
        case _:
            return
    if package not in _FAILS or not _VERSION.fullmatch(wanted) or not isinstance(parent(compare), ast.Assert):
        return
    version = numbers_of(wanted)
    wrong = next((what for below, what in _FAILS[package] if version < below), None)
    if wrong is not None:
        good = ".".join(map(str, _FAILS[package][-1][0]))
        yield work.note(
            compare,
            fixer.code,
            f"the program requires {package} {wanted}, which {wrong}",
            api=package,
            help=f"install {package} {good} or newer, and remove the assertion",
        )
