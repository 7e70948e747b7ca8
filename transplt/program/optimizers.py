"""Which objects of a program are optimizers, and where these take steps."""

from __future__ import annotations

import ast
import re

from transplt.program.models import is_optimizer
from transplt.program.program import File, Function, Program, text_of
from transplt.program.values import values_of
from transplt.syntax.asks import variable
from transplt.syntax.scan import parent

#: Variables that hold optimizers, by the last part of their names, and others that sound like it.
_OPTIMIZER = re.compile(r"opt(?!ion|s$|\.)", re.I)
_NO_OPTIMIZER = re.compile(r"sched|^lr_|option|profil|env", re.I)


def is_optimizer_object(program: Program, file: File, node: ast.expr) -> bool:
    """True for a variable that holds an optimizer: by its values, else by its name."""
    made = [value for value in values_of(program, file, node) if isinstance(value[1], ast.Call)]
    if any(isinstance(value, ast.Call) and is_optimizer(at, value) for at, value in made):
        return True
    text = text_of(file, node)
    last = node.attr if isinstance(node, ast.Attribute) else variable(node)
    if _NO_OPTIMIZER.search(last):
        return False
    if _OPTIMIZER.search(last):
        return True
    called = {
        name
        for name in ("zero_grad", "step", "parameters")
        if any(text_of(file, other.value) == text for other in file.scan.attributes.get(name, ()))
    }
    return called == {"zero_grad", "step"}


def optimizer_stepped(program: Program, file: File, call: ast.Call) -> ast.expr | None:
    """The optimizer whose `step` a call is, None for any other call."""
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr != "step":
        return None
    return func.value if is_optimizer_object(program, file, func.value) else None


def is_closure(program: Program, file: File, function: Function) -> bool:
    """True for a function that is given to an optimizer's step."""
    for use in file.scan.names.get(function.name, ()):
        call = parent(use)
        func = call.func if isinstance(call, ast.Call) and use in call.args else None
        if isinstance(func, ast.Attribute) and func.attr == "step":
            return is_optimizer_object(program, file, func.value)
    return False
