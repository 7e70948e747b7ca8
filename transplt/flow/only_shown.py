"""Whether a value is shown to people, and nothing else is done with it."""

from __future__ import annotations

import ast

from transplt.flow.callees import PROSE_CALLS
from transplt.syntax.nodes import last_name
from transplt.syntax.scan import parent


def only_shown(node: ast.expr) -> bool:
    """True where a value goes into text for people and nowhere else."""
    current: ast.AST = node
    above = parent(current)
    while True:
        if isinstance(above, ast.Call) and current is not above.func:
            last = last_name(above.func)
            if last in PROSE_CALLS or last.endswith(("Error", "Exception", "Warning")):
                return True
            if last not in ("str", "repr", "format"):
                return False
        elif not isinstance(above, (ast.FormattedValue, ast.JoinedStr, ast.Tuple)) and not (
            isinstance(above, ast.BinOp)
            and (isinstance(above.op, ast.Add) or (isinstance(above.op, ast.Mod) and above.right is current))
        ):
            return isinstance(above, (ast.Assert, ast.Raise)) and getattr(above, "msg", None) is current
        current, above = above, parent(above)
