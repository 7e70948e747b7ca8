"""Where the values of a program come from."""

from __future__ import annotations

import ast

from transplt.program.program import File, Program


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
