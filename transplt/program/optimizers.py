"""Which objects of a program are optimizers, and where these take steps."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from transplt.program.models import is_optimizer
from transplt.program.program import File, Function, Program, Slot, stores_of, text_of
from transplt.program.values import values_of
from transplt.syntax.asks import by_place, keyword_of, last_name, variable
from transplt.syntax.scan import FUNCTIONS, chain, parent, statement

#: Variables that hold optimizers, by the last part of their names, and others that sound like it.
_OPTIMIZER = re.compile(r"opt(?!ion|s$|\.)", re.I)
NO_OPTIMIZER = re.compile(r"sched|^lr_|option|profil|env", re.I)


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A call that makes a step. `optimizer` is what the program calls it there; `closure` works out the loss anew."""

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
                optimizer = _stepped(program, file, call)
                if optimizer is not None:
                    found.append(Step(file, call, optimizer, _closure(file, call)))
    return found


def find_optimizers(program: Program) -> list[tuple[File, ast.Call]]:
    """The calls that make optimizers, by file and place; functions and classes of the program are looked into."""
    return [
        (file, call)
        for file in program.files
        for call in by_place(file.scan.calls)
        if is_optimizer(file, call) and program.callee(file, call) is None and (call.args or call.keywords)
    ]


def _stepped(program: Program, file: File, call: ast.Call) -> ast.expr | None:
    assert isinstance(call.func, ast.Attribute)
    if isinstance(program.definition(file, call.func), FUNCTIONS):
        return None  # a method of the program: the steps in it are found by themselves
    made = [value for _, value in values_of(program, file, call.func.value) if isinstance(value, ast.Call)]
    scales = any(last_name(value.func).endswith("GradScaler") for value in made)
    if call.args and (scales or "scaler" in last_name(call.func.value).lower()):
        return call.args[0]
    if any("sched" in last_name(value.func).lower() or last_name(value.func).endswith("LR") for value in made):
        return None
    return optimizer_stepped(program, file, call)


def _closure(file: File, call: ast.Call) -> Function | None:
    given = [*call.args, *([value] if (value := keyword_of(call, "closure")) is not None else [])]
    for argument in given:
        if isinstance(argument, ast.Name):
            found = file.names.lookup(argument.id, file.scan.scope_of(argument))
            for binding in found[1] if found else ():
                if isinstance(binding.node, FUNCTIONS):
                    return binding.node
    return None


def is_optimizer_object(program: Program, file: File, node: ast.expr) -> bool:
    """True for a variable that holds an optimizer: by its values, else by its name."""
    made = [value for value in values_of(program, file, node) if isinstance(value[1], ast.Call)]
    if any(isinstance(value, ast.Call) and is_optimizer(at, value) for at, value in made):
        return True
    text = text_of(file, node)
    last = node.attr if isinstance(node, ast.Attribute) else variable(node)
    if NO_OPTIMIZER.search(last):
        return False
    if _OPTIMIZER.search(last):
        return True
    called = {
        name
        for name in ("zero_grad", "backward", "step", "parameters")
        if any(text_of(file, other.value) == text for other in file.scan.attributes.get(name, ()))
    }
    return called > {"step"} and "parameters" not in called  # an engine goes back and steps


def optimizer_stepped(program: Program, file: File, call: ast.Call) -> ast.expr | None:
    """The optimizer whose `step` a call is, None for any other call."""
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr != "step":
        return None
    return func.value if is_optimizer_object(program, file, func.value) else None


def is_closure(program: Program, file: File, function: Function) -> bool:
    """True for a function that is given to an optimizer's step."""
    for use in file.scan.names.get(function.name, ()):
        call = parent(use)
        func = call.func if isinstance(call, ast.Call) and use in call.args else None
        if isinstance(func, ast.Attribute) and func.attr == "step":
            return is_optimizer_object(program, file, func.value)
    return False


def binds(node: ast.stmt, stores: set[ast.stmt]) -> bool:
    """True when every way through a statement that goes on below it passes one of some statements."""
    if node in stores:
        return True
    if isinstance(node, ast.If):
        branches = [node.body, node.orelse]
        return all(any(binds(item, stores) for item in branch) or _leaves(branch) for branch in branches)
    if isinstance(node, ast.Match):
        return all(any(binds(item, stores) for item in case.body) or _leaves(case.body) for case in node.cases)
    if isinstance(node, (ast.With, ast.AsyncWith, ast.Try)):
        return any(binds(item, stores) for item in node.body)
    return False


def _leaves(branch: list[ast.stmt]) -> bool:
    """True for statements that end in `raise`, `return` or `sys.exit()`."""
    last = branch[-1] if branch else None
    ends_all = isinstance(last, ast.Expr) and isinstance(last.value, ast.Call) and last_name(last.value.func) == "exit"
    return ends_all or isinstance(last, (ast.Raise, ast.Return))


def perhaps_missing(program: Program, slot: Slot) -> bool:
    """True for a variable that every statement which makes its optimizer leaves empty in some case."""
    stores = [statement(node) for _, node in stores_of(program, slot)]
    made = {stmt for stmt in stores if not isinstance(getattr(stmt, "value", None), ast.Constant)}
    for stmt in made:
        conditions = [above for above in chain(stmt) if isinstance(above, (ast.If, ast.Match))]
        if all(binds(above, made) or "__name__" in ast.unparse(getattr(above, "test", above)) for above in conditions):
            return False
    return bool(made)
