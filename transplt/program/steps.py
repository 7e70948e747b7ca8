"""Steps of optimizers: where parameters change, and which optimizer changes them there."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from transplt.program.models import is_optimizer
from transplt.program.program import File, Function, Program, enclosing_function, text_of
from transplt.syntax.asks import by_place, keyword_of, last_name
from transplt.syntax.scan import FUNCTIONS


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A call that makes a step. `optimizer` is what the program calls it there; `closure` computes the loss anew."""

    file: File
    call: ast.Call
    optimizer: ast.expr
    closure: Function | None = None


def find_steps(program: Program) -> list[Step]:
    """The steps of the program, by file and place: `optimizer.step()`, `scaler.step(optimizer)`."""
    found: list[Step] = []
    for file in program.files:
        for call in by_place(file.scan.calls):
            if isinstance(call.func, ast.Attribute) and call.func.attr == "step":
                optimizer = _optimizer(program, file, call)
                if optimizer is not None:
                    found.append(Step(file, call, optimizer, _closure(program, file, call)))
    return found


def find_optimizers(program: Program) -> list[tuple[File, ast.Call]]:
    """The calls that make optimizers, by file and place; functions and classes of the program are looked into."""
    return [
        (file, call)
        for file in program.files
        for call in by_place(file.scan.calls)
        if is_optimizer(file, call) and program.callee(file, call) is None and (call.args or call.keywords)
    ]


def _optimizer(program: Program, file: File, call: ast.Call) -> ast.expr | None:
    assert isinstance(call.func, ast.Attribute)
    receiver = call.func.value
    if isinstance(program.definition(file, call.func), FUNCTIONS):
        return None  # a method of the program: the steps in it are found by themselves
    if call.args and _is_scaler(program, file, receiver):
        return call.args[0]
    return receiver if is_optimizer_object(program, file, receiver) else None


def is_optimizer_object(program: Program, file: File, node: ast.expr) -> bool:
    """True for an expression that stands for an optimizer: by what it was given, else by its name and its use."""
    slot = program.slot(file, node)
    made = [value for value in (program.values.get(slot, ()) if slot else ()) if isinstance(value.node, ast.Call)]
    for value in made:
        assert isinstance(value.node, ast.Call)
        name = value.file.names.qualified(value.node.func) or last_name(value.node.func)
        if "lr_scheduler" in name or "sched" in name.lower():
            return False
        if value.index is None and is_optimizer(value.file, value.node):
            return True
    spelled = text_of(file, node).lower()
    if "sched" in spelled or "scaler" in spelled or "profil" in spelled:
        return False
    if "optim" in spelled or last_name(node).lower().startswith("opt") or last_name(node).lower().endswith("opt"):
        return True
    text = text_of(file, node)
    return any(text_of(file, other.value) == text for other in file.scan.attributes.get("zero_grad", ()))


def _is_scaler(program: Program, file: File, node: ast.expr) -> bool:
    slot = program.slot(file, node)
    for value in program.values.get(slot, ()) if slot else ():
        if isinstance(value.node, ast.Call) and last_name(value.node.func).endswith("GradScaler"):
            return True
    return "scaler" in last_name(node).lower()


def _closure(program: Program, file: File, call: ast.Call) -> Function | None:
    given = [*call.args, *([value] if (value := keyword_of(call, "closure")) is not None else [])]
    for argument in given:
        if isinstance(argument, ast.Name):
            found = file.names.lookup(argument.id, file.scan.scope_of(argument))
            for binding in found[1] if found else ():
                if isinstance(binding.node, FUNCTIONS):
                    return binding.node
    return None


def steps_under(steps: list[Step], function: ast.AST | None) -> list[Step]:
    """The steps whose innermost function is `function`."""
    return [step for step in steps if enclosing_function(step.call) is function]
