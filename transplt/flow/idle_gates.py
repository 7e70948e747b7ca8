"""Gates whose answer changes nothing on an NPU: what runs behind them has no effect there, or cannot be reached."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from transplt.flow.card_reads import says_there_is
from transplt.flow.slots import Slots
from transplt.syntax.conditions import sides_of
from transplt.syntax.names import Names
from transplt.syntax.scan import parent

#: Settings of CUDA's own libraries, which torch_npu does not read.
_SETTINGS = "torch.backends.cud"
#: What a value may be made of that nothing is called for.
_PLAIN = (ast.Constant, ast.Name, ast.Attribute, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.boolop, ast.unaryop,
          ast.cmpop, ast.expr_context)  # fmt: skip


def idle(slots: Slots, question: ast.expr, truth: bool) -> str:
    """The name of the reason why a gate that is true on CUDA only may stay without a word; empty for all others."""
    if truth and _asks_for_a_version(slots, question):
        return "vendor-asked"
    this, other, value = sides_of(question, truth)
    if value is not None or other:
        return ""
    conditions, statements = _parted(this)
    plain = all(isinstance(inner, _PLAIN) for each in conditions for inner in ast.walk(each))
    return "cuda-settings" if plain and sets_libraries(slots.names, statements) else ""


def sets_libraries(names: Names, body: Iterable[ast.AST]) -> bool:
    """True for statements that make settings of CUDA's own libraries, and nothing else; False where there are none."""
    found = False
    for statement in body:
        if not isinstance(statement, ast.Assign) or not all(_is_setting(names, each) for each in statement.targets):
            return False
        if not all(isinstance(inner, _PLAIN) for inner in ast.walk(statement.value)):
            return False
        found = True
    return found


def _is_setting(names: Names, node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and (names.qualified(node) or "").startswith(_SETTINGS)


def _parted(nodes: Iterable[ast.AST]) -> tuple[list[ast.expr], list[ast.AST]]:
    conditions, statements = [], []
    for node in nodes:
        if isinstance(node, ast.expr):
            conditions.append(node)
        else:
            statements.append(node)
    return conditions, statements


def _asks_for_a_version(slots: Slots, question: ast.expr) -> bool:
    """`torch.cuda.is_available() and torch.version.hip`: false on an NPU, whatever the gate says."""
    current, above = question, parent(question)
    while isinstance(above, ast.BoolOp) and isinstance(above.op, ast.And):
        if any(says_there_is(slots, each) for each in above.values if each is not current):
            return True
        current, above = above, parent(above)
    return False
