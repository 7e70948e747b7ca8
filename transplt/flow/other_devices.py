"""Devices that belong to another library: `device` of `WhisperModel(size, device=device)`, and of nothing else."""

from __future__ import annotations

import ast

from transplt.flow.callees import FOREIGN, OTHER_DEVICES, PROSE_CALLS
from transplt.flow.slots import Slots
from transplt.syntax.asks import last_name
from transplt.syntax.scan import Scan, parent

_LIBRARIES = FOREIGN | OTHER_DEVICES


def libraries_of(scan: Scan) -> frozenset[str]:
    """The packages with devices of their own that a file imports."""
    names = [alias.name for node in scan.imports if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in scan.imports if isinstance(node, ast.ImportFrom)]
    return _LIBRARIES.intersection(name.partition(".")[0] for name in names)


def handed_to(slots: Slots, value: ast.expr) -> str:
    """The library that alone is handed the variable in which a string lands; empty where anything else may have it."""
    if slots.libraries is None:
        slots.libraries = libraries_of(slots.scan)
    if not slots.libraries:
        return ""
    node: ast.AST = value
    while isinstance(above := parent(node), (ast.IfExp, ast.BoolOp, ast.Dict)):
        if isinstance(above, ast.IfExp) and node is above.test:
            return ""
        node = above
    if isinstance(node, ast.Dict) and isinstance(above, (ast.Call, ast.keyword)):
        return _taker(slots, node) or ""
    if not isinstance(above, (ast.Assign, ast.AnnAssign)) or above.value is not node:
        return ""
    target = above.targets[0] if isinstance(above, ast.Assign) else above.target
    if not isinstance(target, ast.Name) or (isinstance(above, ast.Assign) and len(above.targets) > 1):
        return ""
    found = {_taker(slots, use) for use in slots.names.uses(target) if isinstance(use.ctx, ast.Load)} - {None}
    return (found.pop() or "") if len(found) == 1 else ""


def _taker(slots: Slots, use: ast.expr) -> str | None:
    """The library whose call takes a value, "" for anything else, and None where it is only shown or tested."""
    node: ast.AST = use
    while isinstance(above := parent(node), (ast.keyword, ast.JoinedStr, ast.FormattedValue)):
        node = above
    if isinstance(above, ast.Compare) or (isinstance(above, (ast.If, ast.IfExp)) and node is above.test):
        return None
    if not isinstance(above, ast.Call) or node is above.func:
        return ""
    root = (slots.names.qualified(above.func) or "").partition(".")[0]
    return root if root in _LIBRARIES else None if last_name(above.func) in PROSE_CALLS else ""
