"""Statements: what a method is called on gets a name and the call goes; an augmented assignment becomes a plain one."""

from __future__ import annotations

from transplt.edits.trees.lazy import cst
from transplt.edits.trees.transform import CannotRewrite, edit_of

_OPERATORS = {"AddAssign": "Add", "SubtractAssign": "Subtract"}


@edit_of("SimpleStatementLine")
def receiver_named(line: cst.SimpleStatementLine, name: str, *, bare: bool = False) -> cst.SimpleStatementLine:
    """`name = x.method(...)` in place of the statement `x.method(...)`; another edit cuts the method off.

    `bare`: x is a hole, and brackets around it go.
    """
    call = cst.ensure_type(cst.ensure_type(line.body[0], cst.Expr).value, cst.Call)
    if bare:
        method = cst.ensure_type(call.func, cst.Attribute)
        call = call.with_changes(func=method.with_changes(value=method.value.with_changes(lpar=(), rpar=())))
    return _with_statement(line, cst.Assign([cst.AssignTarget(cst.Name(name))], call))


@edit_of("SimpleStatementLine")
def without_method(line: cst.SimpleStatementLine) -> cst.SimpleStatementLine:
    """`name = x` in place of the statement `name = x.method(...)`."""
    assigned = cst.ensure_type(line.body[0], cst.Assign)
    method = cst.ensure_type(cst.ensure_type(assigned.value, cst.Call).func, cst.Attribute)
    return _with_statement(line, assigned.with_changes(value=method.value))


@edit_of("SimpleStatementLine")
def as_assignment(line: cst.SimpleStatementLine, name: str) -> cst.SimpleStatementLine:
    """`x += value` as `name = x + value`, likewise with `-`."""
    add = line.body[0]
    if not isinstance(add, cst.AugAssign) or type(add.operator).__name__ not in _OPERATORS:
        raise CannotRewrite("not x += value or x -= value")
    operator = getattr(cst, _OPERATORS[type(add.operator).__name__])()
    value = add.value
    # What needs no parentheses behind a `+`.
    closer = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.Integer, cst.Float)
    tight = (cst.Multiply, cst.Divide, cst.FloorDivide, cst.Modulo, cst.Power)
    binds = isinstance(value.operator, tight) if isinstance(value, cst.BinaryOperation) else isinstance(value, closer)
    if not value.lpar and not binds:
        value = value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    both = cst.BinaryOperation(add.target, operator, value)
    return _with_statement(line, cst.Assign([cst.AssignTarget(cst.Name(name))], both, semicolon=add.semicolon))


def _with_statement(line: cst.SimpleStatementLine, first: cst.BaseSmallStatement) -> cst.SimpleStatementLine:
    return line.with_changes(body=[first, *line.body[1:]])
