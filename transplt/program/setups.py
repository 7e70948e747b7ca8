"""Programs that run in several processes already: their set-up is migrated, and nothing is added to it."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from transplt.program.frameworks import PROCESSES, taken_over
from transplt.program.program import File, Program
from transplt.program.ranks import helper_call
from transplt.syntax.asks import by_place


@dataclass(frozen=True, slots=True)
class Setup:
    """What sets up several processes: a call, or the base of a class. `spawns` when it starts them itself."""

    file: File
    node: ast.expr
    what: str
    spawns: bool


def setups(program: Program) -> list[Setup]:
    """What sets up several processes in a program, by place."""
    found = []
    for file in program.files:
        called: list[tuple[ast.expr, ast.expr]] = [(call, call.func) for call in file.scan.calls]
        derived = [(base, base) for node in file.scan.classes for base in node.bases]
        named = {node: file.names.qualified(name) for node, name in (*called, *derived)}
        for node in by_place(named):
            framework = taken_over(PROCESSES, named[node] or "")
            if isinstance(node, ast.Call) and helper_call(file, node) == "start":
                found.append(Setup(file, node, "npu_port.start", False))
            elif framework is not None:
                found.append(Setup(file, node, framework.called, framework.spawns))
    return found
