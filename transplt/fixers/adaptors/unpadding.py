"""Which form of flash-attn's unpad_input a file expects: from 2.7 on it returns five values, before four."""

from __future__ import annotations

import ast
from dataclasses import replace

from transplt.edits.work import Work
from transplt.rules.taken_over import Package
from transplt.syntax.scan import parent

_FULL = "flash_attn.bert_padding.unpad_input"
_OPEN = "how many values of unpad_input are taken here cannot be read: from flash-attn 2.7 on it returns five"
_HELP = "take all values and drop the rest: `x, indices, cu_seqlens, longest, *_ = unpad_input(...)`"


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
            starred = any(isinstance(each, ast.Starred) for each in targets)
            return len(targets) if len(targets) in (4, 5) and not starred else None
        case ast.Subscript(value=value, slice=ast.Constant(value=0 | 1 | 2 | 3 | 4 as place)) if value is call:
            return 5 if place == 4 else 0
        case ast.Subscript(value=value, slice=ast.Slice(upper=ast.Constant(value=1 | 2 | 3 | 4), step=None)) if (
            value is call
        ):
            return 0
    return None
