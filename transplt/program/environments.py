"""Environments in which a policy of a reinforcement program acts."""

from __future__ import annotations

import ast

from transplt.program.optimizers import is_optimizer_object
from transplt.program.program import File, Program
from transplt.program.variable_values import values_of
from transplt.syntax.scan import FUNCTIONS, parent


def is_environment(program: Program, file: File, node: ast.expr) -> bool:
    """True for an object that gym has made, or that the program calls so."""
    made = [at.names.qualified(value.func) or "" for at, value in values_of(program, file, node)
            if isinstance(value, ast.Call)]  # fmt: skip
    if any(name.startswith(("gym.", "gymnasium.")) for name in made):
        return True
    return "env" in ast.unparse(node).lower() and not is_optimizer_object(program, file, node)


def plays(program: Program, method: ast.AST | None) -> bool:
    """True for `step` and `reset` of a class in sight that is an environment: its step gives a state, a reward, and
    whether the episode has ended."""
    cls = parent(method) if method is not None else None
    if not isinstance(method, FUNCTIONS) or not isinstance(cls, ast.ClassDef):
        return False
    methods = {each.name: each for each in cls.body if isinstance(each, FUNCTIONS)}
    if method.name not in ("step", "reset") or not {"step", "reset"} <= methods.keys():
        return False
    given = list(program.returns(methods["step"]))
    return bool(given) and all(isinstance(each, ast.Tuple) and len(each.elts) >= 3 for each in given)


def acts_in_one(program: Program, file: File, call: ast.Call) -> bool:
    """True for `env.step(action)`."""
    match call:
        case ast.Call(func=ast.Attribute(value=stepped, attr="step"), args=[_, *_]):
            return is_environment(program, file, stepped)
    return False
