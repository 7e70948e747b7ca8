"""Where a program goes back through a loss."""

from __future__ import annotations

import ast

from transplt.program.files import File
from transplt.program.program import enclosing_function
from transplt.syntax.asks import by_place, call_of, class_of_method, last_name, root_name


def backward_passes(file: File) -> list[ast.Call]:
    """The calls `loss.backward(...)` of a file, by place: not what a class that differentiates or wraps hands on."""
    calls = [call for node in file.scan.attributes.get("backward", ()) if (call := call_of(node)) is not None]
    return [call for call in by_place(calls) if not _is_handed_on(call)]


def runs_backward(file: File, call: ast.Call) -> bool:
    """True for `loss_scaler(loss, optimizer, ...)`: an object that runs the backward pass, and takes the step."""
    return "scaler" in last_name(call.func) and len(call.args) > 1 and file.names.qualified(call.func) is None


def _is_handed_on(call: ast.Call) -> bool:
    """True in a method `backward`, `jvp` or `vjp`, and for `super().backward(...)` and `ctx.backward(...)`."""
    assert isinstance(call.func, ast.Attribute)
    of, function = call.func.value, enclosing_function(call)
    if function is not None and function.name in ("backward", "jvp", "vjp") and class_of_method(function) is not None:
        return True
    root = root_name(of)
    inherited = isinstance(of, ast.Call) and isinstance(of.func, ast.Name) and of.func.id == "super"
    return inherited or (root is not None and root.id == "ctx")
