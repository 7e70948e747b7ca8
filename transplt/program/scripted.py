"""What TorchScript compiles: it reads a part of Python only, and knows no torch.finfo."""

from __future__ import annotations

import ast

from transplt.program.program import File, Program
from transplt.syntax.scan import FUNCTIONS

_COMPILERS = ("torch.jit.script", "torch.jit.script_method", "torch.jit.script_if_tracing", "torch.jit.export")


def scripted_in(program: Program) -> set[tuple[str, int]]:
    """The functions and classes that are compiled, by path and line: those decorated, those handed to
    torch.jit.script as they are or as an object, and all that these call and make.
    """
    pending: list[ast.AST] = []
    for file in program.files:
        if b"jit" not in file.source.utf8:
            continue
        for node in (*file.scan.functions, *file.scan.classes):
            for decorator in node.decorator_list:
                func = decorator.func if isinstance(decorator, ast.Call) else decorator
                if file.names.qualified(func) in _COMPILERS:
                    pending.append(node)
        for call in file.scan.calls:
            if file.names.qualified(call.func) in _COMPILERS and call.args:
                pending += _meant(program, file, _object(call.args[0]))
    found: set[ast.AST] = set()
    while pending:
        at = pending.pop()
        if at in found:
            continue
        found.add(at)
        owner = program.owner[at]
        calls = (each for each in ast.walk(at) if isinstance(each, ast.Call))
        pending += [callee for each in calls if (callee := program.callee(owner, each)) is not None]
    return {(program.owner[node].path, getattr(node, "lineno", 0)) for node in found}


def _meant(program: Program, file: File, node: ast.expr) -> list[ast.AST]:
    """The function that a name is, or the class of the object that it holds."""
    if isinstance(node, ast.Call):
        made = program.callee(file, node)
        if isinstance(made, FUNCTIONS):
            return [item for value in program.returns(made) for item in _meant(program, program.owner[made], value)]
        return [made] if made is not None else [item for given in node.args for item in _meant(program, file, given)]
    named = program.named(file, node)
    if named is not None:
        return [named]
    slot = program.slot(file, node)
    values = program.values.get(slot, ()) if slot is not None else ()
    return [
        item
        for value in values
        if isinstance(value.node, ast.Call) and value.index is None
        for item in _meant(program, value.file, _object(value.node))
    ]


def _object(node: ast.expr) -> ast.expr:
    """`Net()` of `Net().to(device).eval()`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Call):
        node = node.func.value
    return node
