"""Shapes of code that more than one part of the program looks for."""

from __future__ import annotations

import ast

from transplt.syntax.names import Names
from transplt.syntax.nodes import argument_at, last_name


def is_window_roll(names: Names, call: ast.Call) -> bool:
    """True for `torch.roll(x, shifts=(a, b), dims=(1, 2))`, the cyclic shift of Swin's windows."""
    if last_name(call.func) != "roll":
        return False
    dims = argument_at(call, 2, "dims")
    axes = [getattr(axis, "value", None) for axis in dims.elts] if isinstance(dims, ast.Tuple) else []
    return axes == [1, 2] and names.qualified(call.func) == "torch.roll"
