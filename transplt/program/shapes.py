"""Shapes of code that more than one part of the program looks for."""

from __future__ import annotations

import ast

from transplt.syntax.names import Names


def is_window_roll(names: Names, call: ast.Call) -> bool:
    """True for `torch.roll(x, shifts=(a, b), dims=(1, 2))`, the cyclic shift of Swin's windows."""
    func = call.func
    if (func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")) != "roll":
        return False
    named = next((keyword.value for keyword in call.keywords if keyword.arg == "dims"), None)
    dims = call.args[2] if len(call.args) > 2 else named
    axes = [getattr(axis, "value", None) for axis in dims.elts] if isinstance(dims, ast.Tuple) else []
    return axes == [1, 2] and names.qualified(func) == "torch.roll"
