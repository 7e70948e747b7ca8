"""Gates whose answer changes nothing on an NPU: what runs behind them has no effect there, or cannot be reached."""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import islice

from transplt.flow.gates.card_reads import says_there_is
from transplt.flow.slot_stores import is_map_location
from transplt.flow.slots import Slots
from transplt.syntax.conditions import Sides, sides_of
from transplt.syntax.names import Names
from transplt.syntax.nodes import nodes_in, string_of
from transplt.syntax.scan import Scan, parent

#: Settings of CUDA's own libraries, which torch_npu does not read.
_SETTINGS = "torch.backends.cud"
#: What a value may be made of that nothing is called for.
_PLAIN = (ast.Constant, ast.Name, ast.Attribute, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.boolop, ast.unaryop,
          ast.cmpop, ast.expr_context)  # fmt: skip


def idle(slots: Slots, question: ast.expr, truth: bool, loads: list[int]) -> str:
    """Why a gate that is true on CUDA only may stay without a word; empty for all others. `loads`: by `cpu_loads`."""
    if truth and _asks_for_a_version(slots, question):
        return "vendor-asked"
    if truth and _loads_to_the_cpu(question):
        return "both"
    sides = sides_of(question, truth)
    above = parent(question)
    above = parent(above) if isinstance(above, ast.UnaryOp) else above
    if truth and isinstance(above, ast.If) and _only_the_other_loads(sides, loads):
        return "both"
    if sides.value is not None or sides.other_runs:
        return ""
    runs = [(isinstance(nodes[start], ast.expr), nodes, start) for nodes, start in sides.runs]
    statements = (nodes[at] for parts, nodes, start in runs if not parts for at in range(start, len(nodes)))
    if not sets_libraries(slots.names, statements):
        return ""
    conditions = (each for parts, nodes, start in runs if parts for each in nodes[start:])
    return "cuda-settings" if all(map(_is_plain, conditions)) else ""


def _loads_to_the_cpu(question: ast.expr) -> bool:
    """`map_location=None if torch.cuda.is_available() else "cpu"`: unlike None, the CPU is right for every file."""
    match choice := parent(question):
        case ast.IfExp(test=test, body=ast.Constant(value=None), orelse=other) if test is question:
            return is_map_location(choice) and string_of(other) == "cpu"
    return False


def _only_the_other_loads(sides: Sides, loads: list[int]) -> bool:
    """True where CUDA alone does nothing, and all else loads to the CPU, which is right for every file."""
    lines = ((getattr(run[start], "lineno", 0), getattr(run[-1], "end_lineno", 0)) for run, start in sides.other_runs)
    if all(bisect_left(loads, first) == bisect_right(loads, last) for first, last in lines):
        return False
    return not any(isinstance(each, (ast.Call, ast.Assign)) for each in nodes_in(sides.this))


def cpu_loads(scan: Scan) -> list[int]:
    """The lines on which a call is given `map_location="cpu"`, in order."""
    given = (each for call in scan.calls for each in call.keywords if each.arg == "map_location")
    return sorted(each.lineno for each in given if string_of(each.value) == "cpu")


def sets_libraries(names: Names, body: Iterable[ast.AST]) -> bool:
    """True for statements that make settings of CUDA's own libraries, by plain values and under plain conditions, and
    nothing else; False where there are none.
    """
    found = False
    for statement in body:  # of many gates each has all the rest of its block
        match statement:
            case ast.Assign(targets=targets, value=plain):
                sets = all((names.qualified(each) or "").startswith(_SETTINGS) for each in targets)
            case ast.If(test=plain, body=inner, orelse=others):
                sets = sets_libraries(names, [*inner, *others])
            case _:
                return False
        if not (found := sets and _is_plain(plain)):
            return False
    return found


def _is_plain(node: ast.AST) -> bool:
    return all(isinstance(inner, _PLAIN) for inner in ast.walk(node))


def _asks_for_a_version(slots: Slots, question: ast.expr) -> bool:
    """`torch.cuda.is_available() and torch.version.hip`: false on an NPU, whatever the gate says."""
    current, above = question, parent(question)
    while isinstance(above, ast.BoolOp) and isinstance(above.op, ast.And):
        said = _parts_with_a_version(slots, above)
        if len(said) > 1 or (said and said[0] is not current):
            return True
        current, above = above, parent(above)
    return False


def _parts_with_a_version(slots: Slots, condition: ast.BoolOp) -> list[ast.expr]:
    """Up to two parts of `a and b` that say that there is a version; each of the others asks for them."""
    known: list[ast.expr] | None = condition.__dict__.get("_versions")
    if known is None:
        said = (each for each in condition.values if says_there_is(slots, each))
        known = condition.__dict__["_versions"] = [*islice(said, 2)]
    return known
