"""What may not run under autocast: binary_cross_entropy, in functions and in objects that are losses."""

from __future__ import annotations

import ast

from transplt.fixers.amp.reading import in_functions
from transplt.fixers.amp.training_units import Unit, calls_in_regions
from transplt.program.program import File, Program
from transplt.program.variable_values import values_of
from transplt.syntax.scan import FUNCTIONS

#: torch raises for these under autocast (torch/_prims_common and the list "Prefer binary_cross_entropy_with_logits").
_CALLS = frozenset({"torch.nn.functional.binary_cross_entropy"})
LOSSES = frozenset({"torch.nn.BCELoss", "torch.nn.modules.loss.BCELoss"})
FLOAT_ONLY = _CALLS | LOSSES


def float_only_calls(unit: Unit) -> list[tuple[File, ast.Call]]:
    """The calls under autocast that end in binary_cross_entropy."""
    return [(file, call) for file, call in calls_in_regions(unit) if is_float_only(unit.program, file, call)]


def losses_called(program: Program, file: File, call: ast.Call) -> list[ast.Call] | None:
    """The `BCELoss(...)` whose object a call runs, none for the function; None for what is no binary_cross_entropy."""
    if file.names.qualified(call.func) in _CALLS:
        return []
    values = values_of(program, file, call.func)
    made = [value for at, value in values if isinstance(value, ast.Call) and at.names.qualified(value.func) in LOSSES]
    return made or None


def is_float_only(program: Program, file: File, call: ast.Call) -> bool:
    """True for a call of binary_cross_entropy, or of an object that calls it."""
    if losses_called(program, file, call) is not None:
        return True
    for at, value in values_of(program, file, call.func):
        if not isinstance(value, ast.Call):
            continue
        made = program.callee(at, value)
        if isinstance(made, ast.ClassDef) and _in_class(program, made):
            return True
    return False


def _in_class(program: Program, cls: ast.ClassDef) -> bool:
    owner = program.owner[cls]
    for method in cls.body:
        if not isinstance(method, FUNCTIONS):
            continue
        for file, call in in_functions(program, owner, method):
            if file.names.qualified(call.func) in FLOAT_ONLY:
                return True
    return False
