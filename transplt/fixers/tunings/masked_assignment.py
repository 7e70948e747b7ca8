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
from transplt.fixers.tuning_writer import touched, writer_for
from transplt.fixers.tunings.finite_masks import is_minus_infinity, stays_finite
from transplt.fixers.tunings.values import is_torch_tensor
from transplt.syntax.nodes import is_dotted
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
    match mask:
        case ast.UnaryOp(op=ast.Invert(), operand=inner):
            return _is_of_its_shape(work, inner, x)
        case ast.Compare(ops=[ast.In() | ast.NotIn() | ast.Is() | ast.IsNot()]):
            return False
        case ast.Compare(left=left, ops=[_], comparators=[right]):
            return same in (ast.dump(left), ast.dump(right))
        case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr(), right=right):
            return _is_of_its_shape(work, left, x) and _is_of_its_shape(work, right, x)
        case ast.Call(args=args, keywords=keywords) if _is_test(work, mask):
            return len(args) == 1 and not keywords and ast.dump(args[0]) == same
        case ast.Call(func=ast.Attribute(value=asked, attr="isnan" | "isinf"), args=[]):
            return ast.dump(asked) == same
    return False


def _is_test(work: Work, mask: ast.expr) -> bool:
    while isinstance(mask, ast.UnaryOp):
        mask = mask.operand
    return isinstance(mask, ast.Call) and work.names.qualified(mask.func) in _TESTS


def _is_number(work: Work, node: ast.expr) -> bool:
    """True for a number or truth value that is written out, and that fits tensors of integers as well."""
    if is_minus_infinity(work, node) or is_minus_infinity(work, ast.UnaryOp(ast.USub(), node)):
        return True
    match node:
        case ast.Constant(value=value) | ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=value)):
            return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return False
