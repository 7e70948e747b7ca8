"""Code that is written for the devices of another maker: what it calls there is no work for an NPU.

A file that imports a package for such devices, and the branches that a question for AMD's cards leads to.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from transplt.edits.edit import Extent, Kept
from transplt.edits.work import Work
from transplt.rules.packages import other_card
from transplt.syntax.conditions import implied
from transplt.syntax.modules import modules_of
from transplt.syntax.nodes import callee_of, is_none, last_name
from transplt.syntax.scan import parent

#: As `other_card` in rules/support/third_party.json.
_NAMES = (b"torch_xla", b"intel_extension_for_pytorch", b"habana_frameworks")
_AMD_WORDS = (b"hip", b"rocm")
#: `IS_HIP`, `is_rocm()`, `USE_ROCM`; a `hip` of its own may be that of a robot.
_AMD = re.compile(r"(?:is_hip|(?:(?:is|use|has|on)_)?rocm)(?:_(?:extension|pytorch|platform|available))?|is_amd", re.I)


def leave_other_cards(work: Work) -> None:
    """Turn notes into remarks in a file that imports such a package at its top; leave what runs on AMD's cards alone.
    """
    for node in work.scan.imports if any(name in work.source.utf8 for name in _NAMES) else ():
        cards = next(filter(None, map(other_card, modules_of(node))), "")
        if cards and isinstance(parent(node), ast.Module):
            work.notes = [note.as_remark(f"the file is written for {cards}") for note in work.notes]
            break
    _leave_branches_for_amd(work)


def _leave_branches_for_amd(work: Work) -> None:
    lowered = work.source.utf8.lower()
    areas = [*_for_amd(work)] if any(word in lowered for word in _AMD_WORDS) else []
    if not areas:
        return

    def inside(extent: Extent) -> bool:
        return any(start <= extent[0] and extent[1] <= end for start, end in areas)

    left = [edit for edit in work.rewrites if not edit.user and inside(work.source.extent(edit.node))]
    gone, together = {id(edit) for edit in left}, {edit.group for edit in left if edit.group}
    work.withdraw_edits(lambda edit: id(edit) in gone or (edit.group in together and not edit.user))
    work.notes = [note.as_remark("it only runs on AMD cards") if inside(note.extent) else note for note in work.notes]
    for area in areas:
        work.add(Kept(area, "amd-side"))


def _for_amd(work: Work) -> Iterator[Extent]:
    """The branches that are taken on AMD's cards alone."""
    for node in work.scan.ifs:
        for side, truth in ((node.body, True), (node.orelse, False)):
            if side and any(_asks_for_amd(atom.node, atom.truth) for atom in implied(node.test, truth)):
                first, last = (side[0], side[-1]) if isinstance(side, list) else (side, side)
                yield work.source.extent(first)[0], work.source.extent(last)[1]


def _asks_for_amd(node: ast.expr, truth: bool) -> bool:
    match node:
        case ast.Compare(left=left, ops=[ast.Is() | ast.Eq()], comparators=[other]) if is_none(other):
            return not truth and _asks_for_amd(left, True)
        case ast.Compare(left=left, ops=[ast.IsNot() | ast.NotEq()], comparators=[other]) if is_none(other):
            return truth and _asks_for_amd(left, True)
        case ast.Call(func=ast.Name(id="bool"), args=[inner]):
            return _asks_for_amd(inner, truth)
        case ast.Attribute(value=ast.Attribute(attr="version") | ast.Name(id="version"), attr="hip"):
            return truth
        case ast.Call() | ast.Name() | ast.Attribute():
            return truth and _AMD.fullmatch(last_name(callee_of(node)).strip("_")) is not None
    return False
