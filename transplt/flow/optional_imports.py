"""Imports that a program can do without: in a `try` that goes on, or behind a question such as
`if is_xformers_available():`.
"""

from __future__ import annotations

import ast
import re

from transplt.flow.gates import CAUGHT, goes_on_without
from transplt.syntax.asks import last_name
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
        if isinstance(above, ast.With) and any(_suppresses(item.context_expr, caught) for item in above.items):
            return True
        node = above
    return False


def _suppresses(node: ast.expr, caught: frozenset[str]) -> bool:
    """True for `contextlib.suppress(ImportError)`."""
    if not isinstance(node, ast.Call) or last_name(node.func) != "suppress":
        return False
    return any(last_name(each) in caught for each in node.args)


def _asks(test: ast.expr) -> bool:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return False
    names = (_question(node) for node in ast.walk(test))
    return any(_ASKS.search(name) and not _CARD.search(name) for name in names)


def _question(node: ast.AST) -> str:
    """The name of a question, with what it is asked of: `cuda.is_available`."""
    name = last_name(node)
    return f"{last_name(node.value)}.{name}" if isinstance(node, ast.Attribute) else name
