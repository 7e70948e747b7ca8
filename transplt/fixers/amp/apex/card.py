"""Whether a model is on the card, and the statements that put it there."""

from __future__ import annotations

import ast

from transplt.program.program import File, Function, Program, Variable, enclosing_function
from transplt.rules.torch_callables import MODULE, names_of
from transplt.syntax.nodes import attribute_of, begins, call_of
from transplt.syntax.scan import FUNCTIONS, statement

#: Methods of a model that put it on a device.
MOVES = names_of(MODULE, "to_card")


def moves(program: Program, file: File, slot: Variable, function: Function | None) -> list[ast.stmt]:
    """The statements of a function that move a model: `model.to(device)`, `model = Net().cuda()`."""
    found = []
    for name in sorted(MOVES):
        for node in file.scan.attributes.get(name, ()):
            call = call_of(node)
            if call is None or enclosing_function(node) is not function:
                continue
            stored = statement(node)
            targets = stored.targets if isinstance(stored, ast.Assign) and core(stored.value) is core(call) else []
            if program.slot(file, node.value) == slot or any(program.slot(file, item) == slot for item in targets):
                found.append(stored)
    return found


def core(node: ast.expr) -> ast.expr:
    """What a chain of moves and wrappers is made around: `Net()` of `Net().to(device)`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MOVES:
        node = node.func.value
    return node


def was_moved(program: Program, slot: Variable, seen: set[Variable]) -> bool:
    """True when the model that a variable is given was moved: by the caller, or by the function that made it."""
    if slot in seen:
        return False
    seen.add(slot)
    for value in program.values.get(slot, ()):
        node, file = value.node, value.file
        if isinstance(node, ast.Call):
            if attribute_of(node.func) in MOVES:
                return True
            callee = program.callee(file, node)
            if isinstance(callee, FUNCTIONS) and _moved_inside(program, callee, value.index, seen):
                return True
        elif isinstance(node, (ast.Name, ast.Attribute)):
            above = program.slot(file, node)
            if above is None:
                continue
            if any(begins(item) < begins(node) for item in moves(program, file, above, enclosing_function(node))):
                return True
            if was_moved(program, above, seen):
                return True
    return False


def _moved_inside(program: Program, callee: Function, index: int | None, seen: set[Variable]) -> bool:
    owner = program.owner[callee]
    for result in program.returns(callee):
        item = result.elts[index] if index is not None and isinstance(result, ast.Tuple) else result
        if isinstance(item, ast.Call) and attribute_of(item.func) in MOVES:
            return True
        slot = program.slot(owner, item)
        if slot is not None and (moves(program, owner, slot, callee) or was_moved(program, slot, seen)):
            return True
    return False
