"""Configurations that are written in Python, as mmengine's are: files of data that a program reads, not runs.

`Config.fromfile` evaluates such a file, or reads it with its imports put off (`read_base`), and hands its values on.
Source: mmengine.readthedocs.io, "Config" and "A Pure Python Style Configuration File".
"""

from __future__ import annotations

import ast

from transplt.syntax.asks import keyword_of, last_name

#: Calls that make data, change it or ask something of it.
_DATA = frozenset(
    "dict list tuple set frozenset str int float bool len range min max sum abs round sorted zip enumerate "
    "copy deepcopy update pop get setdefault append extend insert format items keys values split replace lower upper "
    "join dirname basename abspath exists getenv read_base".split()
)


def is_configuration(tree: ast.Module) -> bool:
    """True for a file of assignments of data, without a call that could run anything on a device, in which parts are
    named by `type` (`dict(type="Runner", ...)`) or which is based on another one (`_base_`, `read_base`).
    """
    waiting = list[ast.stmt](tree.body)
    for node in waiting:  # grows
        if isinstance(node, ast.If):
            waiting += [*node.body, *node.orelse]
        elif isinstance(node, ast.With):
            if not all(_calls(item.context_expr, "read_base") for item in node.items):
                return False
            waiting += node.body
        elif not isinstance(node, (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Delete,
                                   ast.Expr, ast.Pass)):  # fmt: skip
            return False
    named = False
    for inner in ast.walk(tree):
        if isinstance(inner, ast.Call):
            if last_name(inner.func) not in _DATA:
                return False
            named = named or _calls(inner, "read_base") or (_calls(inner, "dict") and bool(keyword_of(inner, "type")))
        elif isinstance(inner, ast.Name):
            named = named or inner.id == "_base_"
        elif isinstance(inner, ast.Dict):
            named = named or any(isinstance(key, ast.Constant) and key.value == "type" for key in inner.keys)
    return named


def _calls(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func) == name
