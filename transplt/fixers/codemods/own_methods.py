"""Classes of the project with a `cuda` or `is_cuda` of their own: they gain the NPU name beside it.

The definition keeps its name, so that nobody who calls it from outside breaks; `npu = cuda` behind it serves the calls
that have moved. This also gives a class that overrides `nn.Module.cuda` its NPU path. A class without
torch is left alone.
"""

from __future__ import annotations

import ast

from transplt.edits.edit import Beside, Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.flow.own_cuda import is_without_torch
from transplt.syntax.nodes import is_property, last_name
from transplt.syntax.scan import FUNCTIONS, parent
from transplt.syntax.scopes import Scope

fixer = Fixer(__name__, code="NPU214", rank=440)

_NEW = {"cuda": "npu", "is_cuda": "is_npu"}


@fixer.on(ast.ClassDef)
def class_of_the_project(work: Work, node: ast.ClassDef) -> Finds:
    """Put the second name behind each definition; report those that stand under a condition."""
    scope = work.scan.scopes[node]
    for old, new in _NEW.items():
        if old not in scope.bindings or new in scope.bindings:
            continue
        if old != "cuda" or not is_without_torch(work.slots, node):
            yield from _define(work, node, scope, old, new)


def _define(work: Work, node: ast.ClassDef, scope: Scope, old: str, new: str) -> Finds:
    last = scope.bindings[old][-1].node
    if not isinstance(last, FUNCTIONS):
        definition = _assigned_method(last)
        if definition is None:
            return  # data
    elif old == "cuda" and is_property(last):
        return  # data as well: it is read, not called
    else:
        definition = last
    message = f"{node.name} defines {old}; its uses now call {new}"
    start = work.source.line_starts[definition.lineno - 1]
    alone_on_its_line = not work.source.utf8[start : start + definition.col_offset].strip()
    if parent(definition) is node and alone_on_its_line:
        yield Edit(Beside(definition, below=True, apart=True), "NPU214", message, f"{new} = {old}")
    else:
        yield work.note(
            definition,
            "NPU215",
            f"{node.name} defines {old}, and no line can be added after it; its uses now call {new}",
            help=f"write `{new} = {old}` after the definition",
        )


def _assigned_method(name: ast.AST) -> ast.stmt | None:
    """The statement `cuda = <function>` in a class body, None when the value is data or may be."""
    match parent(name):
        case ast.Assign(value=ast.Lambda()) as stored:
            return stored
        case ast.Assign(value=ast.Call(func=func)) as stored:
            return stored if last_name(func) in ("partialmethod", "staticmethod", "classmethod") else None
    return None
