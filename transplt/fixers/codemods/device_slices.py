"""Device strings taken apart by position: `device[5:]`, `device[:4] == "cuda"`. `npu` is one letter shorter."""

from __future__ import annotations

import ast
import re

from transplt.edits.edit import Edit, Finds, Note
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.flow.device_or_backend import holds, holds_by_form
from transplt.flow.device_strings import DEVICE_STRING
from transplt.flow.marks import DEVICE, marks_by_name
from transplt.syntax.nodes import last_name, of_kind, plain_name
from transplt.syntax.scan import parent

fixer = Fixer(__name__, code="NPU209", rank=210)

_PLURAL = re.compile(r"(?:s|list|ids|names)$", re.I)


@fixer.on(ast.Subscript)
def taken_apart(work: Work, node: ast.Subscript) -> Finds:
    """Move constant positions in a device string."""
    part = node.slice
    if isinstance(part, ast.Slice) and (part.step is None or _number(part.step) == 1):
        yield from _slice(work, node, part)
    elif isinstance(part, ast.Slice) and max(_number(part.lower) or 0, _number(part.upper) or 0) > 3:
        if _spells_a_device(work, node.value) and not _PLURAL.search(last_name(node.value)):
            yield _perhaps(work, node)
    elif _number(part) == 5 and isinstance(node.ctx, ast.Load):
        yield from _index(work, node, part)


def _slice(work: Work, node: ast.Subscript, part: ast.Slice) -> Finds:
    lower, upper = _number(part.lower), _number(part.upper)
    if part.upper is None and lower == 5:
        bound = part.lower
        # A list of devices is cut in the same way, and a tensor that goes to another's device (`x.to(other)`) is no
        # string: what is cut must be known for one.
        if not _spells_a_device(work, node.value):
            return
        sure = not _PLURAL.search(last_name(node.value)) or _is_call(node, ("int", "str"))
    elif (part.lower is None or lower == 0) and upper in (4, 5):
        bound = part.upper
        sure = _compared_with(node, "cuda" if upper == 4 else "cuda:")
        if not sure:
            return
    else:
        return
    if not holds(work.slots, node.value, DEVICE):
        return
    assert bound is not None
    if not sure:
        yield _perhaps(work, node)
        return
    yield from _shift(work, bound)


def _perhaps(work: Work, node: ast.Subscript) -> Note:
    return work.note(
        node,
        "NPU202",
        "a device string may be sliced here by position, and 'npu' is one letter shorter",
        help="for a string, lower the position by one",
    )


def _index(work: Work, node: ast.Subscript, part: ast.expr) -> Finds:
    if _PLURAL.search(last_name(node.value)) or not _spells_a_device(work, node.value):
        return
    if _is_call(node, ("int", "float")):
        yield from _shift(work, part)
    else:
        yield work.note(
            node,
            "NPU202",
            "this reads the sixth character of a device string; 'npu:0' has its index one place earlier",
            help="if this is a string, write 4 instead of 5",
        )


def _spells_a_device(work: Work, node: ast.expr) -> bool:
    """True for what is called a device, is one by its form, or holds a CUDA string."""
    slots = work.slots
    if not holds(slots, node, DEVICE):
        return False
    slot = slots.of(node)
    if slot is None or DEVICE in marks_by_name(slot) or holds_by_form(slots, node, DEVICE):
        return True
    root = slots.find(slot)
    return any(slots.find(held) == root for held in slots.held)


def _shift(work: Work, bound: ast.expr) -> Finds:
    old = _number(bound)
    if old is None or not work.take(bound):
        return
    new = str(old - 1)
    yield Edit(
        bound,
        "NPU209",
        f"position {old} in a device string -> {new}, as 'npu' is one letter shorter than 'cuda'",
        new,
    )


def _number(node: ast.expr | None) -> int | None:
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def _is_call(node: ast.Subscript, names: tuple[str, ...]) -> bool:
    above = parent(node)
    return isinstance(above, ast.Call) and plain_name(above.func) in names


def _compared_with(node: ast.Subscript, word: str) -> bool:
    """True when a part of a string is compared with that spelling of CUDA's device."""
    above = parent(node)
    if not isinstance(above, ast.Compare):
        return False
    return any(
        item.value == word and DEVICE_STRING.fullmatch(word)
        for side in (above.left, *above.comparators)
        for item in of_kind(ast.Constant, side.elts if isinstance(side, (ast.Tuple, ast.List, ast.Set)) else [side])
    )
