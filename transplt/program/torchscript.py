"""What TorchScript compiles: it reads a part of Python only, and knows no torch.finfo."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from transplt.base.closure import closure
from transplt.program.program import File, Program
from transplt.syntax.nodes import callee_of, inner_nodes
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
                func = callee_of(decorator)
                if file.names.qualified(func) in _COMPILERS:
                    pending.append(node)
        for call in file.scan.calls:
            if file.names.qualified(call.func) in _COMPILERS and call.args:
                pending += _meant(program, file, _object(call.args[0]))

    def called(at: ast.AST) -> Iterator[ast.AST]:
        callees = (program.callee(program.owner[at], each) for each in inner_nodes(at, ast.Call))
        return (callee for callee in callees if callee is not None)

    return {(program.owner[node].path, getattr(node, "lineno", 0)) for node in closure(pending, called)}


def _meant(program: Program, file: File, node: ast.expr) -> list[ast.AST]:
    """The function that a name is, or the class of the object that it holds. `x = wrap(x)` leads to itself: once."""
    found: list[ast.AST] = []
    seen: set[ast.expr] = set()
    pending = [(file, node)]
    while pending:
        here, at = pending.pop()
        if at in seen:
            continue
        seen.add(at)
        if isinstance(at, ast.Call):
            made = program.callee(here, at)
            if isinstance(made, FUNCTIONS):
                pending += [(program.owner[made], value) for value in program.returns(made)]
            elif made is not None:
                found.append(made)
            else:
                pending += [(here, given) for given in at.args]
        elif (named := program.named(here, at)) is not None:
            found.append(named)
        elif (slot := program.slot(here, at)) is not None:
            values = (each for each in program.values.get(slot, ()) if each.index is None)
            pending += [(each.file, _object(each.node)) for each in values if isinstance(each.node, ast.Call)]
    return found


def _object(node: ast.expr) -> ast.expr:
    """`Net()` of `Net().to(device).eval()`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Call):
        node = node.func.value
    return node
