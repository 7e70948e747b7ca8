"""What is counted or kept in loops over the share of a rank, and where all of it is read."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from transplt.program.loops import Loop
from transplt.program.program import Variable
from transplt.program.share_sums import SharedFile, tells_time
from transplt.program.varying import KEEPS
from transplt.syntax.asks import last_name, own_nodes
from transplt.syntax.scan import chain

#: What is of one size, however many samples it is taken over.
_MEANS = frozenset("mean nanmean average fmean median std var max min amax amin quantile softmax enumerate".split())


def filled(own: SharedFile) -> Iterator[tuple[Variable, tuple[Loop, bool]]]:
    """The variables that grow by what differs between ranks, each with its loop over a share, and whether it holds
    items."""

    def differs(node: ast.AST) -> bool:
        parts = (each for each in ast.walk(node) if isinstance(each, (ast.Name, ast.Attribute)))
        return any(map(own.varies, parts))

    for loop in own.loops():
        inside = [node for item in loop.body for node in own_nodes(item)]
        stores = (node.targets for node in inside if isinstance(node, ast.Assign))
        anew = {own.slot(each) for targets in stores for each in targets}
        for node in inside:
            target: ast.expr | None = None
            kept = False
            if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
                item = isinstance(node.target, ast.Subscript)
                target = node.target.value if isinstance(node.target, ast.Subscript) else node.target
                grows = differs(node.value) or (item and differs(node.target))
                target = target if grows else None
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in KEEPS:
                known = own.program.callee(own.file, node) is not None
                kept = True
                target = node.func.value if not known and any(map(differs, node.args)) else None
            slot = own.slot(target) if target is not None else None
            if slot is not None and slot not in anew and not tells_time(slot[2]):
                yield slot, (loop, kept)


def read_whole(own: SharedFile, value: ast.expr) -> Iterator[Variable]:
    """The variables that an expression reads, but for those of which it takes a ratio or a mean."""
    for node in ast.walk(value):
        slot = own.slot(node) if isinstance(node, (ast.Name, ast.Attribute)) else None
        if slot is not None and not _is_ratio(node, value):
            yield slot


def _is_ratio(node: ast.AST, whole: ast.expr) -> bool:
    for above in (node, *chain(node)):
        text = isinstance(above, ast.BinOp) and isinstance(above.left, (ast.Constant, ast.JoinedStr))
        if isinstance(above, ast.BinOp) and isinstance(above.op, (ast.Div, ast.FloorDiv, ast.Mod)) and not text:
            return True
        # One item of what is kept is that of a batch.
        if isinstance(above, ast.Subscript) or (isinstance(above, ast.Call) and last_name(above.func) in _MEANS):
            return True
        if above is whole:
            break
    return False
