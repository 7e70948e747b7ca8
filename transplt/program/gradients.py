"""Code that runs without gradients."""

from __future__ import annotations

import ast

from transplt.syntax.nodes import callee_of, last_name
from transplt.syntax.scan import FUNCTIONS, chain

_OFF = frozenset({"no_grad", "inference_mode"})


def without_gradients(node: ast.AST) -> bool:
    """True for what stands under `no_grad`, in its function."""
    for above in chain(node):
        if isinstance(above, (ast.With, ast.AsyncWith)):
            if any(stops_gradients(item.context_expr) for item in above.items):
                return True
        elif isinstance(above, FUNCTIONS):
            return any(stops_gradients(decorator) for decorator in above.decorator_list)
    return False


def stops_gradients(node: ast.expr) -> bool:
    """True for `torch.no_grad()`, `inference_mode`, `set_grad_enabled(False)`, as a context or a decorator."""
    func = callee_of(node)
    return last_name(func) in _OFF or _enabled(node) is False


def may_stop_gradients(call: ast.Call) -> bool:
    """Also for `set_grad_enabled(phase == "train")`."""
    asked = last_name(call.func) == "set_grad_enabled" and _enabled(call) is not True
    return asked or stops_gradients(call)


def _enabled(node: ast.expr) -> object:
    """What `set_grad_enabled` is given, if it is written out."""
    match node:
        case ast.Call(func=func, args=[ast.Constant(value=value), *_]) if last_name(func) == "set_grad_enabled":
            return value
    return None
