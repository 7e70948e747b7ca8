"""Which model an optimizer trains, when it got all parameters of one."""

from __future__ import annotations

import ast

from transplt.program.program import File, Program, Slot
from transplt.syntax.asks import keyword_of, last_name

_WRAPPERS = ("DataParallel", "DistributedDataParallel", "compile", "convert_sync_batchnorm")
_MOVES = frozenset({"to", "cuda", "npu", "half", "float", "train"})
Model = frozenset[Slot]


def trained(program: Program, file: File, call: ast.Call) -> Model | None:
    """The model whose parameters, all of them, a call that makes an optimizer gets."""
    given = keyword_of(call, "params")
    return model_of(program, file, call.args[0] if call.args else given)


def model_of(program: Program, file: File, node: ast.expr | None) -> Model | None:
    """Where the model comes from whose `.parameters()` an expression is; None for anything else."""
    if not isinstance(node, ast.Call) or node.args or node.keywords or not isinstance(node.func, ast.Attribute):
        return None
    if node.func.attr != "parameters":
        return None
    origins = _origins(program, file, node.func.value, set())
    return origins if len(origins) == 1 else None


def _origins(program: Program, file: File, node: ast.expr, seen: set[Slot]) -> Model:
    """The variables in which a model was made that an expression stands for."""
    while isinstance(node, ast.Attribute) and node.attr == "module":
        node = node.value
    slot = program.slot(file, node)
    if slot is None or slot in seen:
        return frozenset()
    seen.add(slot)
    above: Model = frozenset()
    made_here = not program.values.get(slot)
    for value in program.values.get(slot, ()):
        handed = _handed_on(value.node) if value.index is None else None
        origins = _origins(program, value.file, handed, seen) if handed is not None else frozenset()
        if origins:
            above |= origins
        elif handed is None or program.slot(value.file, handed) != slot:
            made_here = True
    return above | {slot} if made_here else above


def _handed_on(node: ast.expr) -> ast.expr | None:
    """The model that an expression hands on: itself, moved, or in a wrapper."""
    if isinstance(node, (ast.Name, ast.Attribute)):
        return node
    if isinstance(node, ast.Call):
        last = last_name(node.func)
        if last in _WRAPPERS and node.args:
            return _handed_on(node.args[0])
        if last in _MOVES and isinstance(node.func, ast.Attribute):
            return _handed_on(node.func.value)
    return None
