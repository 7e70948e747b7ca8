"""Environments in which a policy of a reinforcement program acts."""

from __future__ import annotations

import ast

from transplt.program.optimizers import is_optimizer_object
from transplt.program.program import File, Program
from transplt.program.values import values_of


def is_environment(program: Program, file: File, node: ast.expr) -> bool:
    """True for an object that gym has made, or that the program calls so."""
    made = [at.names.qualified(value.func) or "" for at, value in values_of(program, file, node)
            if isinstance(value, ast.Call)]  # fmt: skip
    if any(name.startswith(("gym.", "gymnasium.")) for name in made):
        return True
    return "env" in ast.unparse(node).lower() and not is_optimizer_object(program, file, node)


def acts_in_one(program: Program, file: File, call: ast.Call) -> bool:
    """True for `env.step(action)`."""
    func = call.func
    steps = isinstance(func, ast.Attribute) and func.attr == "step" and bool(call.args)
    return steps and isinstance(func, ast.Attribute) and is_environment(program, file, func.value)
