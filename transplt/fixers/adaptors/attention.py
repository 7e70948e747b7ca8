"""`attention`: the functions of flash-attn come from the project's own, or (`=package`) from flash-attn-npu.

Which names those are says rules/support/taken_over.json.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.edits.writer import on_file
from transplt.fixers.adaptors.package import turn_package
from transplt.fixers.adaptors.package_probes import turn_probes
from transplt.fixers.adaptors.writer import AdaptorWriter, value_of, writer_for
from transplt.rules.taken_over import Package, packages
from transplt.syntax.modules import import_base
from transplt.syntax.nodes import of_kind
from transplt.syntax.scan import parent

fixer = Fixer(__name__, code="NPU872", rank=-90, theme="adapt:attention", needs=(b"flash_attn",), value="(?:package)?",
              example="package")  # fmt: skip

_OF_FIRST = ("flash_attn_unpadded_func", "flash_attn_unpadded_kvpacked_func")
_FULL = "flash_attn.bert_padding.unpad_input"
_OPEN = "the number of values taken from unpad_input is unclear here: from flash-attn 2.7 on it returns five"
_HELP = "unpack all values: `x, indices, cu_seqlens, longest, *_ = unpad_input(...)`"


@on_file(fixer, writer_for)
def attention_of_flash_attn(work: Work, writer: AdaptorWriter) -> None:
    """Take from the helper what a file takes from flash-attn."""
    package, left = unpadding(work, packages()["flash_attn"])
    package = package.without(_both_ages(work, package))
    if value_of(work, fixer) == "package":
        package = package.from_other()
    for node, message, help_ in left:
        writer.remark(node, fixer.code, message, help_)
    turned = turn_package(writer, package, fixer.code)
    turn_probes(writer, package, fixer.code, turned=turned)


def _both_ages(work: Work, package: Package) -> set[str]:
    """The functions of flash-attn 1 that a file may take from 2 as well: which corner their masks begin in is open."""
    taken: set[str] = set()
    for node in work.scan.imports:
        if isinstance(node, ast.ImportFrom) and package.holds(import_base(work.scan.path, node) or ""):
            taken.update(alias.name for alias in node.names)
    both = [name for name in _OF_FIRST if name in taken and name.replace("unpadded", "varlen") in taken]
    return {full for full, name in package.names.items() if name in both}


def unpadding(work: Work, package: Package) -> tuple[Package, list[tuple[ast.expr, str, str]]]:
    """The package with the form that a file expects, or without one where it does not show (node, message, help)."""
    if b"unpad_input" not in work.source.utf8:
        return package, []
    wanted: dict[int, ast.expr] = {}
    called = {id(call.func): call for call in work.calls_by_name((_FULL,))}
    names = [name for name, full in work.names.references() if full == _FULL and isinstance(name.ctx, ast.Load)]
    dotted = [node for node in work.scan.attributes.get("unpad_input", ()) if work.names.qualified(node) == _FULL]
    for node in [*names, *dotted]:
        count = _count(called[id(node)]) if id(node) in called else None
        if count is None:
            return package.without([_FULL]), [(node, _OPEN, _HELP)]
        if count:
            wanted[count] = node
    if len(wanted) > 1:
        message = "unpad_input is expected to return four values here, and five elsewhere in the file"
        return package.without([_FULL]), [(wanted[4], message, _HELP)]
    if 4 in wanted:
        return replace(package, names={**package.names, _FULL: "unpad_input_of_four"}), []
    return package, []


def _count(call: ast.Call) -> int | None:
    """How many values the program takes of a call: 4 or 5, 0 where either will do; None where that cannot be read."""
    match parent(call):
        case ast.Assign(
            targets=[ast.Tuple(elts=[*_, ast.Starred()] as targets) | ast.List(elts=[*_, ast.Starred()] as targets)]
        ):
            return 0 if len(targets) <= 5 else None
        case ast.Assign(targets=[ast.Tuple(elts=targets) | ast.List(elts=targets)]):
            starred = any(of_kind(ast.Starred, targets))
            return len(targets) if len(targets) in (4, 5) and not starred else None
        case ast.Subscript(value=value, slice=ast.Constant(value=0 | 1 | 2 | 3 | 4 as place)) if value is call:
            return 5 if place == 4 else 0
        case ast.Subscript(value=value, slice=ast.Slice(upper=ast.Constant(value=1 | 2 | 3 | 4), step=None)) if (
            value is call
        ):
            return 0
    return None
