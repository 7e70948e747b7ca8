"""`masked-assignment`: `x[mask] = number` becomes `x.masked_fill_(mask, number)`.

Only where the mask compares x itself, so that it has the shape of x. Source: facts/advice.json, dynamic_shape (index
assignment with boolean masks asks for shapes that depend on data; slow with jit_compile=True), and the documented
masked_fill_ of the native API lists.
"""

from __future__ import annotations

import ast

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.fixers.around import scripted
from transplt.fixers.tunings.finite_masks import is_minus_infinity, stays_finite
from transplt.fixers.tunings.values import is_torch_tensor
from transplt.fixers.tunings.writer import touched, writer_for
from transplt.syntax.asks import is_dotted
from transplt.syntax.scan import parent

fixer = Fixer(__name__, code="NPU765", rank=460, theme="tune:masked-assignment", needs=(b"torch",))

_TESTS = frozenset({"torch.isnan", "torch.isinf", "torch.isfinite", "torch.isneginf", "torch.isposinf"})


@fixer.on(ast.Subscript)
def number_under_a_mask(work: Work, store: ast.Subscript) -> Finds:
    """Rewrite an assignment of one number where x itself is compared."""
    line, mask = parent(store), store.slice
    if not isinstance(line, ast.Assign) or line.targets != [store]:
        return
    if not is_dotted(store.value) or not _is_of_its_shape(work, mask, store.value) or scripted(work, store):
        return
    if not _is_number(work, line.value) or not (_is_test(work, mask) or is_torch_tensor(work, store.value)):
        return
    writer = writer_for(work, fixer)
    if writer is None or touched(writer, line) or not work.take(line):
        return
    x = work.text(store.value)
    number = work.text(line.value)
    if is_minus_infinity(work, line.value) and stays_finite(work, line, store.value):
        number = f"{writer.torch}.finfo({x}.dtype).min"
    text = f"{x}.masked_fill_({work.text(mask)}, {number})"
    writer.rewrite(line, fixer.code, f"assignment under a mask -> {x}.masked_fill_", text)
    yield from writer.found


def _is_of_its_shape(work: Work, mask: ast.expr, x: ast.expr) -> bool:
    """True for a mask that has the shape of x wherever it fits: x is compared in it, or asked for nan or inf."""
    same = ast.dump(ast.parse(ast.unparse(x), mode="eval").body)  # x as it is read
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


def _is_number(work: Work, node: ast.expr) -> bool:
    """True for a number or truth value that is written out, and that fits tensors of integers as well."""
    if is_minus_infinity(work, node) or is_minus_infinity(work, ast.UnaryOp(ast.USub(), node)):
        return True
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    if not isinstance(node, ast.Constant) or isinstance(node.value, (str, bytes)):
        return False
    return isinstance(node.value, (bool, int)) or (isinstance(node.value, float) and node.value.is_integer())
