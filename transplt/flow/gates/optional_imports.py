"""Imports that a program can do without: in a `try` that goes on, or behind a question such as
`if is_xformers_available():`.
"""

from __future__ import annotations

import ast
import re

from transplt.flow.gates.conditions import CAUGHT, goes_on_without
from transplt.syntax.nodes import last_name
from transplt.syntax.scan import parent

_ASKS = re.compile(r"available|installed|(?:^|_)has_|(?:^|_)have_|find_spec", re.I)
#: Questions for a card, which an NPU answers with yes or no; after a migration some that were for CUDA with yes.
_CARD = re.compile(r"(?:^|[._])(?:cuda|gpus?|npu|mps|xpu)(?:[._]|$)", re.I)


def can_fail(node: ast.AST, caught: frozenset[str] = CAUGHT) -> bool:
    """True for an import without which the program goes on, or for what else may raise one of some errors."""
    while not isinstance(node, ast.Module):
        above = parent(node)
        if isinstance(above, ast.Try) and node in above.body and goes_on_without(above, caught):
            return True
        if isinstance(above, ast.If) and node in above.body and _asks(above.test):
            return True
        for item in above.items if isinstance(above, ast.With) else ():
            match item.context_expr:
                case ast.Call(func=func, args=errors) if last_name(func) == "suppress":
                    if any(last_name(each) in caught for each in errors):
                        return True
        node = above
    return False


def _asks(test: ast.expr) -> bool:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return False
    for node in ast.walk(test):
        name = last_name(node)
        if isinstance(node, ast.Attribute):  # with what it is asked of: `cuda.is_available`
            name = f"{last_name(node.value)}.{name}"
        if _ASKS.search(name) and not _CARD.search(name):
            return True
    return False
