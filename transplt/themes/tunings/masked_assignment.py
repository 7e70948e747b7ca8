"""`--tune masked-assignment`: `x[mask] = number` becomes `x.masked_fill_(mask, number)`.

Only where the mask compares x itself, so that it has the shape of x. Source: facts/advice.json, dynamic_shape (index
assignment with boolean masks asks for shapes that depend on data; slow with jit_compile=True), and the documented
masked_fill_ of the native API lists.
"""

from __future__ import annotations

import ast

from transplt.edits.rewrite import Change
from transplt.edits.work import Work, is_dotted
from transplt.edits.writing import Writer, written
from transplt.finding import Level
from transplt.syntax.scan import parent
from transplt.themes.tunings.finite_masks import is_minus_infinity, stays_finite
from transplt.themes.tunings.values import is_torch_tensor, scripted, text_of

CODE = "NPU765"
_TESTS = frozenset({"torch.isnan", "torch.isinf", "torch.isfinite", "torch.isneginf", "torch.isposinf"})


def plan(writer: Writer, value: str) -> None:
    """Rewrite the assignments of one number where x itself is compared."""
    work = writer.work
    if b"torch" not in work.source.utf8:
        return
    stores = [node for node in work.scan.subscripts if isinstance(node.ctx, ast.Store)]
    for store in sorted(stores, key=lambda node: (node.lineno, node.col_offset)):
        line = parent(store)
        if not isinstance(line, ast.Assign) or len(line.targets) != 1 or not is_dotted(store.value):
            continue
        mask = store.slice
        if not _is_of_its_shape(work, mask, store.value) or scripted(work, store):
            continue
        if not _is_number(work, line.value):
            continue
        if not (_is_test(work, mask) or is_torch_tensor(work, store.value)):
            continue
        if any(_overlaps(work, change, line) for change in work.changes) or not work.take(line):
            continue
        x = text_of(work, store.value)
        number = text_of(work, line.value)
        if is_minus_infinity(work, line.value) and stays_finite(work, line, store.value):
            number = f"{writer.torch}.finfo({x}.dtype).min"
        text = f"{x}.masked_fill_({text_of(work, mask)}, {number})"
        message = f"assignment under a mask -> {x}.masked_fill_"
        work.changes.append(Change(line, CODE, message, written(text), Level.UNSAFE, asked=True))


def _overlaps(work: Work, change: Change, node: ast.stmt) -> bool:
    start, end = work.source.extent(node)
    at, to = work.source.extent(change.node)
    return start <= at and to <= end


def _is_of_its_shape(work: Work, mask: ast.expr, x: ast.expr) -> bool:
    """True for a mask that has the shape of x wherever it fits: x is compared in it, or asked for nan or inf."""
    same = ast.dump(_as_load(x))
    if isinstance(mask, ast.UnaryOp) and isinstance(mask.op, ast.Invert):
        return _is_of_its_shape(work, mask.operand, x)
    if isinstance(mask, ast.Compare) and len(mask.ops) == 1:
        if isinstance(mask.ops[0], (ast.In, ast.NotIn, ast.Is, ast.IsNot)):
            return False
        return any(ast.dump(side) == same for side in (mask.left, *mask.comparators))
    if isinstance(mask, ast.BinOp) and isinstance(mask.op, (ast.BitAnd, ast.BitOr)):
        return _is_of_its_shape(work, mask.left, x) and _is_of_its_shape(work, mask.right, x)
    if isinstance(mask, ast.Call):
        if _is_test(work, mask):
            return len(mask.args) == 1 and not mask.keywords and ast.dump(mask.args[0]) == same
        func = mask.func
        if isinstance(func, ast.Attribute) and func.attr in ("isnan", "isinf") and not mask.args:
            return ast.dump(func.value) == same
    return False


def _is_test(work: Work, mask: ast.expr) -> bool:
    while isinstance(mask, ast.UnaryOp):
        mask = mask.operand
    return isinstance(mask, ast.Call) and work.names.qualified(mask.func) in _TESTS


def _as_load(node: ast.expr) -> ast.expr:
    copy = ast.parse(ast.unparse(node), mode="eval").body
    return copy


def _is_number(work: Work, node: ast.expr) -> bool:
    """True for a number or truth value that is written out, and that fits tensors of integers as well."""
    if is_minus_infinity(work, node) or is_minus_infinity(work, ast.UnaryOp(ast.USub(), node)):
        return True
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    if not isinstance(node, ast.Constant) or isinstance(node.value, (str, bytes)):
        return False
    return isinstance(node.value, (bool, int)) or (isinstance(node.value, float) and node.value.is_integer())
