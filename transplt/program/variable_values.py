"""Where the values of a program come from, and where its variables are read."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection

from transplt.program.program import File, Function, Program, Variable, scope_key
from transplt.syntax.scan import FUNCTIONS


def values_of(program: Program, file: File, node: ast.expr) -> list[tuple[File, ast.expr]]:
    """What a variable was given in the program, through other variables."""
    found: list[tuple[File, ast.expr]] = []
    pending = [(file, node)]
    seen: set[int] = set()
    while pending and len(seen) < 50:
        at, expression = pending.pop()
        if id(expression) in seen:
            continue
        seen.add(id(expression))
        if not isinstance(expression, (ast.Name, ast.Attribute)):
            found.append((at, expression))
            continue
        slot = program.slot(at, expression)
        for value in program.values.get(slot, ()) if slot else ():
            if value.index is None:
                pending.append((value.file, value.node))
    return found


def assigned(program: Program, file: File, node: ast.expr) -> list[tuple[File, ast.expr]]:
    """What a variable itself was given, each as it is written; nothing for one that is taken apart from a value."""
    slot = program.slot(file, node)
    return [(value.file, value.node) for value in program.values.get(slot, ()) if value.index is None] if slot else []


def named(node: ast.expr) -> ast.expr | None:
    """The variable that a value is, None for anything else."""
    return node if isinstance(node, (ast.Name, ast.Attribute)) else None


def origins(
    program: Program, slot: Variable | None, hands_on: Callable[[ast.expr], ast.expr | None] = named
) -> tuple[Variable, ...]:
    """The variables in which what a variable holds was made, through other variables and parameters, nearest first.

    `hands_on` gives the name whose object a value is: its own, or that of what is moved or wrapped; None for others.
    A variable that is None at first is not made there.
    """
    return tuple(_origins(program, slot, hands_on, set()))


def _origins(
    program: Program, slot: Variable | None, hands_on: Callable[[ast.expr], ast.expr | None], seen: set[Variable]
) -> dict[Variable, None]:
    if slot is None or slot in seen:
        return {}
    seen.add(slot)
    values = [value for value in program.values.get(slot, ()) if not isinstance(value.node, ast.Constant)]
    above: dict[Variable, None] = {}
    made_here = not values
    for value in values:
        handed = hands_on(value.node) if value.index is None else None
        given = program.slot(value.file, handed) if handed is not None else None
        above |= _origins(program, given, hands_on, seen)
        made_here = made_here or given is None
    return {slot: None} | above if made_here else above


def uses(program: Program, slots: Collection[Variable]) -> list[tuple[File, ast.expr]]:
    """Where variables are read, by file and place."""
    found: list[tuple[File, ast.expr]] = []
    for file in program.files:
        for name in sorted({slot[2] for slot in slots}):
            every: list[ast.Name | ast.Attribute] = [
                *file.scan.names.get(name, ()), *file.scan.attributes.get(name, ()),
            ]  # fmt: skip
            found += [
                (file, node) for node in every if isinstance(node.ctx, ast.Load) and program.slot(file, node) in slots
            ]
    return sorted(found, key=lambda item: (item[0].path, item[1].lineno, item[1].col_offset))


def parameter_of(program: Program, slot: Variable) -> Function | None:
    """The function whose parameter a variable is."""
    file = next((file for file in program.files if file.path == slot[0]), None)
    for scope in file.scan.scopes.values() if file is not None else ():
        if scope_key(scope) == slot[1] and isinstance(scope.node, FUNCTIONS):
            return scope.node if any(b.kind == "param" for b in scope.bindings.get(slot[2], ())) else None
    return None
