"""Where a program goes back through a loss."""

from __future__ import annotations

import ast

from transplt.program.program import enclosing_function
from transplt.syntax.files import File
from transplt.syntax.nodes import by_place, call_of, class_of_method, inner_nodes, last_name, root_name
from transplt.syntax.scan import Scan


def backward_passes(scan: Scan) -> list[ast.Call]:
    """The backward passes of a file, by place."""
    calls = (call_of(node) for node in scan.attributes.get("backward", ()))
    return by_place(call for call in calls if call is not None and is_backward_pass(call))


def goes_back(node: ast.AST) -> bool:
    """True for code with a backward pass in it."""
    return any(is_backward_pass(inner) for inner in inner_nodes(node, ast.Call))


def is_backward_pass(call: ast.Call) -> bool:
    """True for `loss.backward(...)`, where it is no class that differentiates or wraps and hands it on.

    Such a class does so in a method `backward`, `jvp` or `vjp`, or writes `super().backward(...)`, `ctx.backward(...)`.
    """
    match call.func:
        case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr="backward"):
            return False
        case ast.Attribute(value=loss, attr="backward"):
            function = enclosing_function(call)
            differentiates = function is not None and function.name in ("backward", "jvp", "vjp")
            return not (differentiates and class_of_method(function)) and last_name(root_name(loss)) != "ctx"
    return False


def steps_by_itself(file: File, call: ast.Call) -> bool:
    """True for `loss_scaler(loss, optimizer, ...)`: an object that runs the backward pass, and takes the step."""
    return "scaler" in last_name(call.func) and len(call.args) > 1 and file.names.qualified(call.func) is None


def runs_backward(file: File, call: ast.Call) -> bool:
    """True for what runs a backward pass in sight or not: also `self.manual_backward(loss)` of Lightning."""
    return is_backward_pass(call) or steps_by_itself(file, call) or last_name(call.func) == "manual_backward"
