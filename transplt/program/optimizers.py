"""Which objects of a program are optimizers, and where these take steps."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from transplt.program.loops import loops_around
from transplt.program.models import defines_optimizer, is_optimizer, kind_of
from transplt.program.optimized_models import ParametersGiven, parameters_given
from transplt.program.optimizer_variables import OptimizerUse, OptimizerVariables
from transplt.program.program import File, Function, Program, Variable, stores_of, text_of
from transplt.program.variable_values import values_of
from transplt.syntax.nodes import (
    attribute_of,
    by_place,
    inner_nodes,
    is_false,
    keyword_of,
    last_name,
    string_of,
    variable,
)
from transplt.syntax.scan import FUNCTIONS, chain, parent, statement

#: Variables that hold optimizers, by the last part of their names, and others that sound like it.
_OPTIMIZER = re.compile(r"opt(?!ion|s$|\.)", re.I)
NO_OPTIMIZER = re.compile(r"sched|^lr_|option|profil|env", re.I)


@dataclass(frozen=True, slots=True, eq=False)
class Optimizer:
    """A call that makes an optimizer: its class (see `kind_of`), what it trains, who holds it and what is done with it.

    `holders` are variables, the first one first.
    """

    file: File
    call: ast.Call
    kind: str
    given: ParametersGiven
    holders: tuple[Variable, ...]
    uses: tuple[OptimizerUse, ...]


@dataclass(frozen=True, slots=True, eq=False)
class OptimizerStep:
    """A call that makes a step. `optimizer` is what the program calls it there; `closure` works out the loss anew."""

    file: File
    call: ast.Call
    optimizer: ast.expr
    closure: Function | None = None

    @property
    def stmt(self) -> ast.stmt:
        """Its statement, or the loop of `for optimizer in optimizers: optimizer.step()`."""
        name, loop = getattr(self.optimizer, "id", ""), next(iter(loops_around(self.call)), None)
        over = list(ast.walk(loop.target)) if isinstance(loop, ast.For) and name else []
        return loop if loop is not None and any(getattr(at, "id", "") == name for at in over) else statement(self.call)


def find_steps(program: Program) -> list[OptimizerStep]:
    """The steps of the program, by file and place: `optimizer.step()`, `scaler.step(optimizer)`."""
    every = [(file, call) for file in program.files for call in by_place(file.scan.calls)]
    return [step for file, call in every if (step := _stepped(program, file, call)) is not None]


def find_optimizers(program: Program) -> list[Optimizer]:
    """The optimizers of the program, by file and place; its functions that make them are looked into."""
    found = []
    for file, call, kind in optimizer_calls(program):
        held = OptimizerVariables(program)
        held.follow(file, call)
        given = parameters_given(program, file, call)
        found.append(Optimizer(file, call, kind, given, (*held.slots,), (*held.uses,)))
    return found


def optimizer_calls(program: Program) -> Iterator[tuple[File, ast.Call, str]]:
    """The calls that make optimizers with their kinds, by file and place."""
    for file in program.files:
        for call in by_place(file.scan.calls):
            kind = kind_of(file, call) if call.args or call.keywords else None
            if kind is not None and program.callee(file, call) is None:
                yield file, call, kind


def asks_for_fused(file: File, call: ast.Call) -> bool:
    """True for an optimizer that is fused, or may be: by its keyword, or one in a dict that it is given with `**`."""
    fused = keyword_of(call, "fused")
    if fused is not None:
        return not is_false(fused)
    given = {last_name(each.value) for each in call.keywords if each.arg is None} - {""}
    stored = (each.value for each in file.scan.assigns if not given.isdisjoint(map(last_name, each.targets)))
    for each in (each for value in stored for each in ast.walk(value)):
        match each:
            case ast.Call() if last_name(each.func) == "dict" and keyword_of(each, "fused") is not None:
                return True
            case ast.Dict() if any(string_of(key) == "fused" for key in each.keys):
                return True
    return False


def _stepped(program: Program, file: File, call: ast.Call) -> OptimizerStep | None:
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "step":
        return None
    held = values_of(program, file, call.func.value)
    method = program.definition(file, call.func)
    if isinstance(method, FUNCTIONS) and not _steps_itself(program, method) and not any(
        isinstance(value, ast.Call) and kind_of(at, value) is not None and program.callee(at, value) is None
        for at, value in held
    ):
        return None  # a method of the program: the steps in it are found by themselves
    made = [value for _, value in held if isinstance(value, ast.Call)]
    scales = any(last_name(value.func).endswith("GradScaler") for value in made)
    if call.args and (scales or "scaler" in last_name(call.func.value).lower()):
        return OptimizerStep(file, call, call.args[0], _closure(program, file, call))
    return optimizer_stepped(program, file, call)


def _steps_itself(program: Program, method: Function) -> bool:
    """True for the step of an optimizer of the program's own that calls no other one's."""
    owner = parent(method)
    own = isinstance(owner, ast.ClassDef) and defines_optimizer(program, owner)
    return own and all(attribute_of(call.func) != "step" for call in inner_nodes(method, ast.Call))


def _closure(program: Program, file: File, call: ast.Call) -> Function | None:
    given = [*call.args, *([value] if (value := keyword_of(call, "closure")) is not None else [])]
    for argument in given:
        meant: list[ast.AST | None] = []
        if isinstance(argument, ast.Name):
            found = file.names.lookup(argument.id, file.scan.scope_of(argument))
            meant = [binding.node for binding in found[1]] if found else []
        elif isinstance(argument, ast.Attribute):
            meant = [program.definition(file, argument)]
        for each in meant:
            if isinstance(each, FUNCTIONS):
                return each
    return None


def is_optimizer_object(program: Program, file: File, node: ast.expr) -> bool:
    """True for a variable that holds an optimizer: by its values, else by its name."""
    made = [(at, value) for at, value in values_of(program, file, node) if isinstance(value, ast.Call)]
    if any(is_optimizer(at, value) for at, value in made):
        return True
    if any("sched" in last_name(value.func).lower() or last_name(value.func).endswith("LR") for _, value in made):
        return False
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


def optimizer_stepped(program: Program, file: File, call: ast.Call) -> OptimizerStep | None:
    """The step of an optimizer that a call is, None for any other call."""
    match call.func:
        case ast.Attribute(value=optimizer, attr="step") if is_optimizer_object(program, file, optimizer):
            return OptimizerStep(file, call, optimizer, _closure(program, file, call))
    return None


def is_closure(program: Program, file: File, function: Function) -> bool:
    """True for a function that is given to an optimizer's step."""
    uses = (*file.scan.names.get(function.name, ()), *file.scan.attributes.get(function.name, ()))
    calls = (call for use in uses if isinstance(call := parent(use), ast.Call))
    steps = (optimizer_stepped(program, file, call) for call in calls)
    return any(step is not None and step.closure is function for step in steps)


def binds(node: ast.stmt, stores: set[ast.stmt]) -> bool:
    """True when every way through a statement that goes on below it passes one of some statements."""
    if node in stores:
        return True
    branches: list[list[ast.stmt]] = []
    match node:
        case ast.If():
            branches = [node.body, node.orelse]
        case ast.Match():
            branches = [case.body for case in node.cases]
        case ast.With() | ast.AsyncWith() | ast.Try():
            return any(binds(item, stores) for item in node.body)
        case _:
            return False
    return all(any(binds(item, stores) for item in branch) or _leaves(branch) for branch in branches)


def _leaves(branch: list[ast.stmt]) -> bool:
    """True for statements that end in `raise`, `return` or `sys.exit()`."""
    match branch:
        case [*_, ast.Raise() | ast.Return()]:
            return True
        case [*_, ast.Expr(value=ast.Call(func=func))]:
            return last_name(func) == "exit"
    return False


def perhaps_missing(program: Program, slot: Variable) -> bool:
    """True for a variable that every statement which makes its optimizer leaves empty in some case."""
    stores = [statement(node) for _, node in stores_of(program, slot)]
    made = {stmt for stmt in stores if not isinstance(getattr(stmt, "value", None), ast.Constant)}
    for stmt in made:
        conditions = [above for above in chain(stmt) if isinstance(above, (ast.If, ast.Match))]
        if all(binds(above, made) or "__name__" in ast.unparse(getattr(above, "test", above)) for above in conditions):
            return False
    return bool(made)
