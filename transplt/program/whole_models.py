"""Which model it is all of whose parameters an expression gives."""

from __future__ import annotations

import ast

from transplt.program.program import SAME_MODULE, File, Program, Variable
from transplt.program.variable_values import origins
from transplt.rules.torch_callables import last_names
from transplt.syntax.nodes import last_name

Model = frozenset[Variable]


def model_of(program: Program, file: File, node: ast.expr | None) -> Model | None:
    """Where the model comes from whose `.parameters()` an expression is; None for anything else."""
    match node:
        case ast.Call(func=ast.Attribute(value=model, attr="parameters"), args=[], keywords=[]):
            found = origins(program, program.slot(file, _bare(model)), handed_on)
            return frozenset(found) if len(found) == 1 else None
    return None


def _bare(node: ast.expr) -> ast.expr:
    """`model` of `model.module`."""
    while isinstance(node, ast.Attribute) and node.attr == "module":
        node = node.value
    return node


def handed_on(node: ast.expr) -> ast.expr | None:
    """The model that an expression hands on: itself, moved, or in a wrapper."""
    if isinstance(node, (ast.Name, ast.Attribute)):
        return _bare(node)
    if isinstance(node, ast.Call):
        last = last_name(node.func)
        if last in last_names("wraps", "converts") and node.args:
            return handed_on(node.args[0])
        if last in SAME_MODULE and isinstance(node.func, ast.Attribute):
            return handed_on(node.func.value)
    return None
