"""Statements of one call: what a method is called on gets a name, and the call goes. By trees."""

from __future__ import annotations

from transplt.trees.lazy import cst
from transplt.trees.transform import Transform


def receiver_named(name: str, *, bare: bool = False) -> Transform:
    """`name = x.method(...)` in place of the statement `x.method(...)`; another edit cuts the method off.

    `bare`: x is a hole, and brackets around it go.
    """

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        line = cst.ensure_type(node, cst.SimpleStatementLine)
        call = cst.ensure_type(cst.ensure_type(line.body[0], cst.Expr).value, cst.Call)
        if bare:
            method = cst.ensure_type(call.func, cst.Attribute)
            call = call.with_changes(func=method.with_changes(value=method.value.with_changes(lpar=(), rpar=())))
        assigned = cst.Assign([cst.AssignTarget(cst.Name(name))], call)
        return line.with_changes(body=[assigned, *line.body[1:]])

    return transform


def without_method(node: cst.CSTNode) -> cst.CSTNode:
    """`name = x` in place of the statement `name = x.method(...)`."""
    line = cst.ensure_type(node, cst.SimpleStatementLine)
    assigned = cst.ensure_type(line.body[0], cst.Assign)
    method = cst.ensure_type(cst.ensure_type(assigned.value, cst.Call).func, cst.Attribute)
    return line.with_changes(body=[assigned.with_changes(value=method.value), *line.body[1:]])
