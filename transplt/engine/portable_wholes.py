"""Devices that move together in the portable style: a text with its placeholders, and the values of one table.

`f"cuda:{torch.cuda.current_device()}"` with one part for every accelerator and one for CUDA names a card of neither,
and so does half of a device map. Where a device of such a whole stays with CUDA, all of it does.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator

from transplt.edits.edit import Edit
from transplt.edits.work import Work
from transplt.syntax.nodes import last_name
from transplt.syntax.scan import ancestor, parent

TORN = "a device beside it stays with CUDA"
#: Codes of a string that is, or may be, a device.
_DEVICES = ("NPU201", "NPU202", "NPU203")


def torn(work: Work, planned: Iterable[Edit], portable: Collection[int]) -> list[Edit]:
    """The portable edits (by id) of wholes in which a device stays."""
    planned = list(planned)
    staying = [edit.node for edit in planned if edit.code in _DEVICES and id(edit) not in portable]
    noted = {note.extent for note in work.notes if note.code in _DEVICES and not note.ignored}
    if noted:
        texts = (node for node in ast.walk(work.scan.tree) if isinstance(node, (ast.Constant, ast.JoinedStr)))
        staying += [node for node in texts if work.source.extent(node) in noted]
    held = {id(whole) for node in staying for whole in _wholes(node)}
    return [edit for edit in planned if id(edit) in portable and any(id(each) in held for each in _wholes(edit.node))]


def wholes(planned: Iterable[Edit]) -> list[list[Edit]]:
    """The edits of each whole that has several."""
    found: dict[int, list[Edit]] = {}
    for edit in planned:
        for whole in _wholes(edit.node):
            found.setdefault(id(whole), []).append(edit)
    return [edits for edits in found.values() if len(edits) > 1]


def _wholes(node: ast.AST) -> Iterator[ast.expr]:
    """The f-string that holds a node, and the dict, list or set of which it is, or makes, a value."""
    text = node if isinstance(node, ast.JoinedStr) else ancestor(node, (ast.JoinedStr, ast.stmt), "_text")
    if isinstance(text, ast.JoinedStr):
        yield text
        node = text
    while True:
        above = parent(node)
        if isinstance(above, (ast.List, ast.Set)) or (isinstance(above, ast.Dict) and node in above.values):
            yield above
            return
        if isinstance(above, ast.keyword):
            call = parent(above)
            if isinstance(call, ast.Call) and last_name(call.func) == "dict":
                yield call
            return
        names_it = isinstance(above, ast.Call) and (above.func is node or last_name(above.func) in ("device", "str"))
        if not names_it and not isinstance(above, ast.IfExp):
            return
        node = above
