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
    func = call.func
    if not (isinstance(func, ast.Attribute) and func.attr == "view" and isinstance(func.value, ast.Subscript)):
        return
    if len(call.args) != 1 or call.keywords or ast.unparse(call.args[0]) != "-1" or not _is_first_rows(func.value):
        return
    if isinstance(func.value.value, ast.Name) and _lies_transposed(work, func.value.value, _LONGEST_WAY):
        text = work.source.slice(*work.source.extent(func))
        if not text.endswith("view") or not work.take(func):
            return
        message = ".view(-1) of a non-contiguous tensor -> .reshape(-1): it raises since torch 1.7"
        yield Edit(func, fixer.code, message, f"{text[:-4]}reshape", api="torch.Tensor.view")


def _is_first_rows(node: ast.Subscript) -> bool:
    """True for `x[:k]` and `x[0:k]`; of one row, `x[:1]`, a view is there."""
    rows = node.slice
    if not isinstance(rows, ast.Slice) or rows.step is not None or rows.upper is None:
        return False
    from_the_first = rows.lower is None or (isinstance(rows.lower, ast.Constant) and rows.lower.value == 0)
    return from_the_first and not (isinstance(rows.upper, ast.Constant) and rows.upper.value == 1)


def _lies_transposed(work: Work, node: ast.expr | None, steps: int) -> bool:
    if node is None or not steps:
        return False
    if isinstance(node, ast.Name):
        return _lies_transposed(work, last_value(work.scan, node), steps - 1)
    if isinstance(node, ast.Compare):
        return len(node.ops) == 1 and _lies_transposed(work, node.left, steps - 1)
    if not isinstance(node, ast.Call):
        return False
    if work.names.qualified(node.func) == "torch.eq":
        return bool(node.args) and _lies_transposed(work, node.args[0], steps - 1)
    if not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr == "t":
        return not node.args and not node.keywords
    return node.func.attr in _KEEP and _lies_transposed(work, node.func.value, steps - 1)
