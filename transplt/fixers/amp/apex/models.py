"""The models that an optimizer is made for, as they are spelled in the function that makes it: for amp.initialize."""

from __future__ import annotations

import ast

from transplt.program.models import base_of, is_optimizer
from transplt.program.optimized_models import added, counted
from transplt.program.program import File, Function, Program, Variable, enclosing_function, text_of
from transplt.rules.torch_callables import MODULE, names_of
from transplt.syntax.nodes import plain_name
from transplt.syntax.scan import FUNCTIONS


def models_given(program: Program, file: File, stored: ast.stmt, origin: Variable) -> list[ast.expr] | None:
    """The models in the call that makes an optimizer; empty for `optimizer = None`, None when they cannot be seen."""
    value = getattr(stored, "value", None)
    both: list[ast.expr] = [value] if isinstance(value, ast.expr) else []
    match stored, value:
        case _, ast.Constant():
            return []
        case _, ast.IfExp(body=body, orelse=other):
            both = [body, other]
        case ast.Assign(targets=[ast.Tuple(elts=names), *_]), ast.Tuple(elts=values):
            both = [item for name, item in zip(names, values, strict=False) if program.slot(file, name) == origin]
    found: list[ast.expr] = []
    for call in both:
        if not isinstance(call, ast.Call):
            return None
        bases = _bases(program, file, call, set())
        if not bases:
            return None
        found += bases
    return found


def _bases(program: Program, file: File, node: ast.expr, seen: set[int]) -> list[ast.expr]:
    """`model` of every `model.parameters()` in the arguments of a call, through variables and one helper."""
    found: dict[str, ast.expr] = {}
    if isinstance(node, ast.Call) and isinstance(callee := program.callee(file, node), FUNCTIONS):
        return [] if id(callee) in seen else _from_helper(program, file, node, callee, seen | {id(callee)})
    for at in ast.walk(node):
        if isinstance(at, ast.Attribute) and at.attr in names_of(MODULE, "parameters"):
            if (base := base_of(at.value)) is not None:
                found.setdefault(text_of(file, base), base)
        elif isinstance(at, ast.Name) and isinstance(at.ctx, ast.Load) and id(at) not in seen:
            seen.add(id(at))
            slot = program.slot(file, at)
            if slot is None:
                continue
            asking = names_of(MODULE, "parameters")
            given = [
                value
                for value in program.values.get(slot, ())
                if value.file is file and any(getattr(at, "attr", "") in asking for at in ast.walk(value.node))
            ]
            for value in (*given, *added(program, file, slot), *counted(program, file, slot)):
                if enclosing_function(value.node) is enclosing_function(node):
                    for base in _bases(program, file, value.node, seen):
                        found.setdefault(text_of(file, base), base)
    return list(found.values())


def _from_helper(program: Program, file: File, call: ast.Call, callee: Function, seen: set[int]) -> list[ast.expr]:
    """The arguments of `make_optimizer(model, ...)` whose parameters the optimizers made there get.

    Of a method they may be what it is called of, and attributes of the object that both are methods of.
    """
    owner = program.owner[callee]
    given = dict(program.arguments(call, callee))
    found: dict[str, ast.expr] = {}
    for inner in owner.scan.calls:
        if enclosing_function(inner) is not callee or not is_optimizer(owner, inner):
            continue
        for base in _bases(program, owner, inner, set(seen)):
            argument = given.get(base.id) if isinstance(base, ast.Name) else None
            of = call.func.value if isinstance(call.func, ast.Attribute) else None
            if of is not None and plain_name(base) == "self":
                argument = of
            elif plain_name(of) == "self" and isinstance(base, ast.Attribute) and owner is file:
                argument = base
            if argument is None or not isinstance(argument, (ast.Name, ast.Attribute)):
                return []
            found.setdefault(text_of(file, argument), argument)
    return list(found.values())
