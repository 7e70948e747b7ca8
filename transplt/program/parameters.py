"""What of a program is a model or a part of one, by what it asks for parameters."""

from __future__ import annotations

import ast

from transplt.program.program import Program
from transplt.syntax.asks import last_name
from transplt.syntax.scan import parent

_PARAMETERS = frozenset({"parameters", "named_parameters", "modules", "named_modules", "children"})


def models_asked(program: Program) -> set[str]:
    """The last names of what `.parameters()` is asked of."""
    names = set()
    for file in program.files:
        for node in file.scan.attributes.get("parameters", ()):
            names.add(last_of(node.value))
    return names - {""}


def is_part(node: ast.expr, models: set[str]) -> bool:
    """True for a model and for what is reached from it: `model.layers[0].weight`."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Attribute) and node.attr in models:
            return True
        node = node.value
    return isinstance(node, ast.Name) and node.id in models - {"self", "cls"}


def last_of(node: ast.expr) -> str:
    """`model` of `model`, `self.model` and `self.model.module`."""
    while isinstance(node, ast.Attribute) and node.attr == "module":
        node = node.value
    return last_name(node)


def over_parameters(node: ast.AST) -> bool:
    """True inside of a loop over parameters or modules."""
    while not isinstance(node, ast.Module):
        node = parent(node)
        if isinstance(node, ast.For):
            asked = [item.attr for item in ast.walk(node.iter) if isinstance(item, ast.Attribute)]
            if _PARAMETERS & set(asked) or "param" in ast.unparse(node.iter):
                return True
    return False
