"""What of a program is a model or a part of one, by what it asks for parameters; where they are freed and frozen."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from transplt.program.program import SAME_MODULE, File, Program
from transplt.rules.torch_callables import MODULE, names_of
from transplt.syntax.nodes import arguments_of, by_place, call_of, inner_nodes, is_false, last_name, string_of
from transplt.syntax.scan import parent


class GradientSetting(NamedTuple):
    """A place that says of something whether it gets gradients: `p.requires_grad = value`."""

    node: ast.Attribute | ast.Call
    of: ast.expr
    value: ast.expr | None  # None: not set in one place (`p.requires_grad, lr = ...`), or the default, which is True

    @property
    def freezes(self) -> bool:
        """True where it never gets any."""
        return is_false(self.value)


def gradients_asked(file: File) -> Iterator[GradientSetting]:
    """Where a file sets `requires_grad`: by an assignment, by requires_grad_() and by setattr.

    Anything else that is stored in a model (a module, a flag) leaves the parameters that it has as they are.
    """
    for store in by_place(file.scan.stores):
        if store.attr == "requires_grad":
            yield GradientSetting(store, store.value, getattr(parent(store), "value", None))
    for asked in by_place(file.scan.attributes.get("requires_grad_", ())):
        if (call := call_of(asked)) is not None:
            yield GradientSetting(asked, asked.value, next(iter(arguments_of(call)), None))
    for call in by_place(file.scan.calls):
        if last_name(call.func) == "setattr" and len(call.args) == 3 and string_of(call.args[1]) == "requires_grad":
            yield GradientSetting(call, call.args[0], call.args[2])


def models_asked(program: Program) -> set[str]:
    """The last names of what `.parameters()` is asked of."""
    asked = (node for file in program.files for node in file.scan.attributes.get("parameters", ()))
    return {last_of(node.value) for node in asked} - {""}


def is_part(node: ast.expr, models: set[str]) -> bool:
    """True for a model and for what is reached from it: `model.layers[0].weight`."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Attribute) and node.attr in models:
            return True
        node = node.value
    return isinstance(node, ast.Name) and node.id in models - {"self", "cls"}


def last_of(node: ast.expr) -> str:
    """`model` of `model`, `self.model`, `self.model.module` and `model.eval()`."""
    while True:
        match node:
            case ast.Attribute(value=inside, attr="module"):
                node = inside
            case ast.Call(func=ast.Attribute(value=inside, attr=name)) if name in SAME_MODULE:
                node = inside
            case _:
                return last_name(node)


def over_parameters(node: ast.AST) -> bool:
    """True inside of a loop or a comprehension over parameters or modules."""
    while not isinstance(node, ast.Module):
        node = parent(node)
        heads = [node.iter] if isinstance(node, ast.For) else [each.iter for each in getattr(node, "generators", ())]
        for head in heads:
            asked = [item.attr for item in inner_nodes(head, ast.Attribute)]
            if names_of(MODULE, "parts") & set(asked) or "param" in ast.unparse(head):
                return True
    return False
