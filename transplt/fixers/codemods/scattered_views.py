"""`.view(-1)` of a part of what was transposed: torch refuses that since 1.7, and `.reshape(-1)` reads the same values.

The accuracy of the examples of ImageNet is written so in many programs: `pred = pred.t()`, `correct = pred.eq(...)`,
`correct[:k].view(-1)`. An operation element by element keeps the order in memory of what it is given (pytorch/pytorch
issue 43998), so `correct` lies transposed, and its first rows are in pieces. Only what the function itself shows
is edited: the transposition, the comparison, the slice.
"""

from __future__ import annotations

import ast

from transplt.edits.edit import Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.flow.last_value import last_value

fixer = Fixer(__name__, code="NPU159", rank=366, needs=(b".view(",), words=(".topk(",))

#: Methods whose result lies in memory as what they are called on, in the order of its dimensions.
_KEEP = frozenset({"eq", "ne", "gt", "ge", "lt", "le", "float", "long", "int", "double", "clone", "bool"})
_LONGEST_WAY = 5


@fixer.on(ast.Call)
def view_of_a_part(work: Work, call: ast.Call) -> Finds:
    """`x[:k].view(-1)` -> `x[:k].reshape(-1)`, where x was transposed."""
    match call:
        case ast.Call(
            func=ast.Attribute(value=ast.Subscript(value=ast.Name() as name) as rows, attr="view") as func,
            args=[shape],
            keywords=[],
        ) if ast.unparse(shape) == "-1" and _is_first_rows(rows) and _lies_transposed(work, name, _LONGEST_WAY):
            text = work.text(func)
            if text.endswith("view") and work.take(func):
                message = ".view(-1) of a non-contiguous tensor -> .reshape(-1): .view raises an error since torch 1.7"
                yield Edit(func, fixer.code, message, f"{text[:-4]}reshape", api="torch.Tensor.view")


def _is_first_rows(node: ast.Subscript) -> bool:
    """True for `x[:k]` and `x[0:k]`; of one row, `x[:1]`, a view is there."""
    match node.slice:
        case ast.Slice(upper=None | ast.Constant(value=1)):
            return False
        case ast.Slice(lower=None | ast.Constant(value=0), step=None):
            return True
    return False


def _lies_transposed(work: Work, node: ast.expr | None, steps: int) -> bool:
    if node is None or not steps:
        return False
    match node:
        case ast.Name():
            return _lies_transposed(work, last_value(work.scan, node), steps - 1)
        case ast.Compare(left=left, ops=[_]):
            return _lies_transposed(work, left, steps - 1)
        case ast.Call(func=func, args=args) if work.names.qualified(func) == "torch.eq":
            return bool(args) and _lies_transposed(work, args[0], steps - 1)
        case ast.Call(func=ast.Attribute(attr="t"), args=args, keywords=keywords):
            return not args and not keywords
        case ast.Call(func=ast.Attribute(value=value, attr=method)):
            return method in _KEEP and _lies_transposed(work, value, steps - 1)
    return False
