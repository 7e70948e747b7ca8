"""Where `.module` is asked of what no wrapper is seen to be around."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from transplt.program.program import File, Program, ProgramValue, Variable
from transplt.rules.torch_callables import names_of
from transplt.syntax.nodes import by_place, inner_nodes, last_name
from transplt.syntax.scan import chain

#: What may give back a wrapped model, by a part of its name.
_WRAPPING = ("Parallel", "wrap", "prepare", "initialize", "compile", "deepcopy", "parallel")


def modules_of_unwrapped(program: Program) -> Iterator[tuple[File, ast.Attribute]]:
    """`model.module` of variables that hold no wrapper, as far as their values are known."""
    for file in program.files:
        for node in by_place(file.scan.attributes.get("module", ())):
            slot = program.slot(file, node.value)
            if slot is None or not isinstance(node.ctx, ast.Load) or _is_asked_for(node):
                continue
            leaves = list(_leaves(program, slot, set()))
            if leaves and not any(_may_wrap(program, leaf) for leaf in leaves):
                yield file, node


def _is_asked_for(node: ast.AST) -> bool:
    """True where a condition around a node asks what it is: `model.module if hasattr(model, "module") else model`."""
    tests = [above.test for above in (node, *chain(node)) if isinstance(above, (ast.If, ast.IfExp))]
    tests += [above for above in chain(node) if isinstance(above, ast.BoolOp)]
    inside = [inner for test in tests for inner in ast.walk(test)]
    return any(isinstance(each, ast.Call) and last_name(each.func) in names_of("builtins", "asks") for each in inside)


def _leaves(program: Program, slot: Variable, seen: set[Variable]) -> Iterator[ProgramValue | None]:
    """The expressions from which a variable has its value; None for one that is not known."""
    if slot in seen:
        return
    seen.add(slot)
    values = program.values.get(slot)
    if not values:
        yield None
    for value in values or ():
        above = program.slot(value.file, value.node) if value.index is None else None
        if above is not None:
            yield from _leaves(program, above, seen)
        else:
            yield value if isinstance(value.node, ast.Call) and value.index is None else None


def _may_wrap(program: Program, leaf: ProgramValue | None) -> bool:
    if leaf is None or not isinstance(leaf.node, ast.Call):
        return True
    calls = list(inner_nodes(leaf.node, ast.Call))
    if any(part in last_name(call.func) for part in _WRAPPING for call in calls):
        return True
    made = program.callee(leaf.file, leaf.node)
    if made is None:  # a class of another library may wrap
        known = [leaf.file.names.qualified(call.func) or "" for call in calls]
        return any(name and not name.startswith("torch.nn.") for name in known)
    called = any(last_name(call.func).endswith(("Parallel", "wrap")) for call in inner_nodes(made, ast.Call))
    return called or any(node.attr == "module" for node in inner_nodes(made, ast.Attribute))
