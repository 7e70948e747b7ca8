"""`jit-script`: where TorchScript stands between a model and what the NPU does with it."""

from __future__ import annotations

import ast

from transplt.edits.writing import Writer
from transplt.syntax.scan import parent

CODE = "NPU772"
_SCRIPTS = frozenset({"torch.jit.script", "torch.jit.script_method", "torch.jit.script_if_tracing"})
_HELP = (
    "take the decorator out (or call the function itself), and measure: eager operators are what NPU kernels are for"
)


def plan(writer: Writer, value: str) -> None:
    """Say where code is compiled by TorchScript."""
    work = writer.work
    if b"jit" not in work.source.utf8:
        return
    named = ("script", "script_method", "script_if_tracing")
    nodes: list[ast.expr] = [node for name in named for node in work.scan.attributes.get(name, ())]
    nodes += [
        node for names in work.scan.names.values() for node in names if not isinstance(parent(node), ast.Attribute)
    ]
    found = [node for node in nodes if (work.names.qualified(node) or "") in _SCRIPTS and _applied(node)]
    for node in sorted(found, key=lambda node: (node.lineno, node.col_offset)):
        writer.remark(node, CODE, f"{work.names.qualified(node)} has no fuser for the NPU", _HELP)


def _applied(node: ast.expr) -> bool:
    """True for a decorator and for the callee of a call; an alias or an argument says nothing yet."""
    above = parent(node)
    if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return node in above.decorator_list
    return isinstance(above, ast.Call) and above.func is node
