"""Configurations that are written in Python, as mmengine's are: files of data that a program reads, not runs.

`Config.fromfile` evaluates such a file, or reads it with its imports put off (`read_base`), and hands its values on.
Source: mmengine.readthedocs.io, "Config" and "A Pure Python Style Configuration File".
"""

from __future__ import annotations

import ast

from transplt.syntax.nodes import keyword_of, last_name, string_of

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
        match node:
            case ast.If(body=body, orelse=other):
                waiting += [*body, *other]
            case ast.With(items=items, body=body) if all(_calls(item.context_expr, "read_base") for item in items):
                waiting += body
            case ast.Import() | ast.ImportFrom() | ast.Assign() | ast.AnnAssign() | ast.AugAssign() | ast.Delete():
                continue
            case ast.Expr() | ast.Pass():
                continue
            case _:
                return False
    named = False
    for inner in ast.walk(tree):
        match inner:
            case ast.Call(func=func) if last_name(func) not in _DATA:
                return False
            case ast.Call():
                named = named or _calls(inner, "read_base")
                named = named or (_calls(inner, "dict") and keyword_of(inner, "type") is not None)
            case ast.Name(id="_base_"):
                named = True
            case ast.Dict(keys=keys):
                named = named or any(string_of(key) == "type" for key in keys)
    return named


def _calls(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func) == name
