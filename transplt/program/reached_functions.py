"""Which functions of a program its main file runs."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from transplt.base.grouped import grouped
from transplt.program.program import File, Function, Program, enclosing_function
from transplt.syntax.scan import FUNCTIONS, chain, parent


def reached_functions(program: Program, begin: list[ast.stmt] | None = None) -> set[ast.AST]:
    """The functions that the main file's code calls, by resolution where it works, else by name.

    `begin`: the statements of the main file's top level to begin with; all of them without it.
    """
    by_name = grouped((function.name, function) for file in program.files for function in file.scan.functions)
    reached: set[ast.AST] = set()
    pending: list[ast.AST] = []
    main = program.files[0]
    calls: dict[int, list[tuple[File, ast.Call]]] = {}
    todo: list[tuple[File, ast.Call]] = []
    for file in program.files:
        for call in file.scan.calls:
            holder = enclosing_function(call)
            if holder is not None:
                calls.setdefault(id(holder), []).append((file, call))
            elif file is main and (begin is None or any(above in begin for above in chain(call))):
                todo.append((file, call))
    while todo or pending:
        while todo:
            file, call = todo.pop()
            for reachable in _may_run(program, file, call, by_name):
                if reachable not in reached:
                    reached.add(reachable)
                    pending.append(reachable)
        while pending:
            todo += calls.get(id(pending.pop()), [])
    return reached


def _may_run(program: Program, file: File, call: ast.Call, by_name: dict[str, list[Function]]) -> list[Function]:
    """The functions that a call may run: what it calls, what is called so, and what it is given."""
    found: list[Function] = []
    match program.callee(file, call):
        case ast.FunctionDef() | ast.AsyncFunctionDef() as callee:
            found = [callee]
        case ast.ClassDef(body=body):
            found = [node for node in body if isinstance(node, FUNCTIONS)]
        case _ if commands := program.commands(file, call.func):
            found = list(commands)
        case _ if isinstance(call.func, ast.Attribute) and file.names.qualified(call.func) is None:
            found = [node for node in by_name.get(call.func.attr, ()) if isinstance(parent(node), ast.ClassDef)]
    handed = (program.definition(file, each) for each in call.args if isinstance(each, ast.Name))
    return found + [each for each in handed if isinstance(each, FUNCTIONS)]


def functions_run_in(program: Program, file: File, node: ast.AST) -> set[ast.AST]:
    """The functions that a piece of code calls, directly or not, as far as calls can be resolved."""
    return functions_run_from(program, [(file, node)])


def functions_run_from(program: Program, places: Iterable[tuple[File, ast.AST]]) -> set[ast.AST]:
    """The same of several pieces of code together."""
    found: set[ast.AST] = set()
    pending = list(places)
    while pending:
        at, inside = pending.pop()
        for call in ast.walk(inside):
            for callee in program.runs(at, call) if isinstance(call, ast.Call) else ():
                function = program.constructor(callee)
                if function is not None and function not in found:
                    found.add(function)
                    pending.append((program.owner[function], function))
    return found
