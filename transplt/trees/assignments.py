"""Assignments: an augmented one that becomes a plain one of another name."""

from __future__ import annotations

from transplt.trees.lazy import cst
from transplt.trees.transform import CannotRewrite, Transform

_OPERATORS = {"AddAssign": "Add", "SubtractAssign": "Subtract"}


def as_assignment(name: str) -> Transform:
    """`x += value` as `name = x + value`, likewise with `-`."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        line = cst.ensure_type(node, cst.SimpleStatementLine)
        add = line.body[0]
        if not isinstance(add, cst.AugAssign) or type(add.operator).__name__ not in _OPERATORS:
            raise CannotRewrite("not x += value or x -= value")
        operator = getattr(cst, _OPERATORS[type(add.operator).__name__])()
        value = add.value
        if not value.lpar and not _binds_closer(value):
            value = value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        both = cst.BinaryOperation(add.target, operator, value)
        made = cst.Assign([cst.AssignTarget(cst.Name(name))], both, semicolon=add.semicolon)
        return line.with_changes(body=[made, *line.body[1:]])

    return transform


def _binds_closer(value: cst.BaseExpression) -> bool:
    """True for what needs no parentheses behind a `+`."""
    if isinstance(value, cst.BinaryOperation):
        return isinstance(value.operator, (cst.Multiply, cst.Divide, cst.FloorDivide, cst.Modulo, cst.Power))
    return isinstance(value, (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.Integer, cst.Float))
