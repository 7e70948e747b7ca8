"""Names that a file reads as it is imported, and that nothing gives a value: `class Head(Module):` without its import.

Only files that others import from, or that begin a program, are looked at, and of them what runs on every import: no
branch, loop, function or comprehension. Left alone are files in which code makes names (`exec`, `globals()`, a star
import) or into which a tool puts some (notebooks, configurations).
"""

from __future__ import annotations

import ast
import builtins

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.syntax.annotations import is_annotation
from transplt.syntax.nodes import has_main_guard
from transplt.syntax.scan import chain

fixer = Fixer(__name__, code="NPU298", rank=367, edits=False)

_BUILTIN = frozenset(dir(builtins))
#: What reads of these show that names come from elsewhere.
_MAKES_NAMES = frozenset(
    "exec eval globals locals vars execfile builtins __builtins__ get_ipython get_config display profile tags".split()
)
_ALWAYS_RUNS = (ast.Assign, ast.AugAssign, ast.Expr, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)
_MAY_BE_LEFT_OUT = (ast.IfExp, ast.BoolOp, ast.Lambda, ast.comprehension, ast.GeneratorExp)


@fixer.on(ast.Module)
def read_and_never_bound(work: Work, tree: ast.Module) -> Finds:
    """Report the first place of each such name, where the import stops."""
    scan = work.scan
    runs = has_main_guard(tree) or scan.path in work.project.aside.taken
    if not runs or scan.root.stars or not _MAKES_NAMES.isdisjoint(scan.names):
        return
    for name in sorted(scan.names.keys() - _BUILTIN):
        if name.startswith("__") or scan.binds(name):
            continue
        for node in scan.names[name]:
            if not is_annotation(node) and _runs_on_import(work, node):
                message = f"nothing in this file gives {name} a value: NameError as the file is imported"
                help_ = "import or define it, or remove what uses it"
                yield work.note(node, fixer.code, message, api=name, help=help_)
                break


def _runs_on_import(work: Work, node: ast.Name) -> bool:
    if work.scan.scope_of(node).kind not in ("module", "class"):
        return False
    for above in chain(node):
        if isinstance(above, _MAY_BE_LEFT_OUT) or (isinstance(above, ast.stmt) and not isinstance(above, _ALWAYS_RUNS)):
            return False
    return True
