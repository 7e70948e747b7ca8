"""`attention`: the functions of flash-attn come from the project's own, or (`=package`) from flash-attn-npu.

Which names those are says rules/support/taken_over.json.
"""

from __future__ import annotations

import ast

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.fixers.adaptors.package import turn_package
from transplt.fixers.adaptors.package_probes import turn_probes
from transplt.fixers.adaptors.unpadding import unpadding
from transplt.fixers.adaptors.writer import value_of, writer_for
from transplt.rules.taken_over import Package, packages
from transplt.syntax.modules import import_base

fixer = Fixer(__name__, code="NPU872", rank=-90, theme="adapt:attention", needs=(b"flash_attn",), value="(?:package)?",
              example="package")  # fmt: skip

_OF_FIRST = ("flash_attn_unpadded_func", "flash_attn_unpadded_kvpacked_func")


@fixer.on(ast.Module)
def attention_of_flash_attn(work: Work, tree: ast.Module) -> Finds:
    """Take from the helper what a file takes from flash-attn."""
    writer = writer_for(work, fixer)
    if writer is None:
        return
    package, left = unpadding(work, packages()["flash_attn"])
    package = package.without(_both_ages(work, package))
    if value_of(work, fixer) == "package":
        package = package.from_other()
    for node, message, help_ in left:
        writer.remark(node, fixer.code, message, help_)
    turned = turn_package(writer, package, fixer.code, ("NPU510",))
    turn_probes(writer, package, fixer.code, turned=turned)
    yield from writer.found


def _both_ages(work: Work, package: Package) -> set[str]:
    """The functions of flash-attn 1 that a file may take from 2 as well: which corner their masks begin in is open."""
    taken: set[str] = set()
    for node in work.scan.imports:
        if isinstance(node, ast.ImportFrom) and package.holds(import_base(work.scan.path, node) or ""):
            taken.update(alias.name for alias in node.names)
    both = [name for name in _OF_FIRST if name in taken and name.replace("unpadded", "varlen") in taken]
    return {full for full, name in package.names.items() if name in both}
