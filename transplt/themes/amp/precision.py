"""What half precision would make wrong, and what would be compared across precisions, in code under autocast.

The log-probabilities of a policy are worked out twice: where it acts, which stays in float32, and in the loss; their
ratio has to be 1 before the first step. Those of a Gaussian behind a tanh take the logarithm of 1 - tanh(u) ** 2, of
which float16 keeps nothing from u = 4 on.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from transplt.program.optimizers import is_optimizer_object
from transplt.program.program import File, Program
from transplt.program.values import values_of
from transplt.syntax.asks import last_name
from transplt.syntax.scan import FUNCTIONS
from transplt.themes.amp.reading import own_nodes

NO_GRADIENTS = frozenset(
    {"torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad", "torch.set_grad_enabled"}
)
_BY_HAND = (
    "leave this training in float32, or write autocast around the networks alone and make their outputs float32 "
    "behind it: .float()"
)


def calls_under(program: Program, file: File, nodes: Iterable[ast.AST]) -> Iterator[tuple[File, ast.Call]]:
    """The calls in some statements and in all that these run: functions, networks and methods of the program.

    A method whose object cannot be followed is every method of its name.
    """
    by_name: dict[str, list[tuple[File, ast.AST]]] = {}
    for name, (owner, function) in program.functions.items():
        if name.rpartition(".")[0] in program.classes:
            by_name.setdefault(function.name, []).append((owner, function))
    pending = [(file, node) for node in nodes]
    seen: set[int] = set()
    while pending:
        at, node = pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        for call in own_nodes(node):
            if not isinstance(call, ast.Call):
                continue
            yield at, call
            pending += _run_by(program, at, call, by_name)


def _run_by(
    program: Program, file: File, call: ast.Call, by_name: dict[str, list[tuple[File, ast.AST]]]
) -> list[tuple[File, ast.AST]]:
    callee = program.callee(file, call)
    if isinstance(callee, FUNCTIONS):
        return [(program.owner[callee], callee)]
    if callee is not None or file.names.qualified(call.func) is not None:
        return []
    values = [(at, value) for at, value in values_of(program, file, call.func) if isinstance(value, ast.Call)]
    classes = [cls for at, value in values if isinstance(cls := program.callee(at, value), ast.ClassDef)]
    if classes:
        methods = ((cls, method) for cls in classes for method in cls.body)
        return [(program.owner[cls], method) for cls, method in methods if isinstance(method, FUNCTIONS)]
    return by_name.get(call.func.attr, []) if isinstance(call.func, ast.Attribute) else []


def gradients_off(program: Program, file: File, region: list[ast.stmt]) -> bool:
    """True when a part of what a region runs is without gradients.

    Autocast keeps the weights that it casts: those that it cast without gradients get none behind that either (pytorch
    issues 65766 and 112583, mended at the end of 2025).
    """
    return any(at.names.qualified(call.func) in NO_GRADIENTS for at, call in calls_under(program, file, region))


def needs_digits(program: Program, file: File, region: list[ast.stmt]) -> tuple[ast.Call | None, str, str] | None:
    """The call for which a region must not run in half precision (None for one in another file), why, what to do."""
    for node in region:
        for call in own_nodes(node):
            if isinstance(call, ast.Call) and _acts(program, file, call):
                why = "the environment takes its steps between the forward pass and the loss"
                return call, f"{why}: what the policy does would depend on rounding", _BY_HAND
    for at, call in calls_under(program, file, region):
        there = "" if at is file else f" ({at.path}:{call.lineno})"
        here = call if at is file else None
        if last_name(call.func) == "log_prob":
            why = "log-probabilities are compared with those of the same policy where it acts, in float32"
            return here, f"{why}{there}", _BY_HAND
        if last_name(call.func) in ("log", "log1p") and _near_zero(call):
            return here, f"the logarithm of 1 - x ** 2 has no digits left in half precision{there}", _BY_HAND
    return None


def _acts(program: Program, file: File, call: ast.Call) -> bool:
    """`env.step(action)`: a step of no optimizer that gets an argument and whose result is taken apart."""
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr != "step" or not call.args:
        return False
    return "env" in ast.unparse(func.value).lower() and not is_optimizer_object(program, file, func.value)


def _near_zero(call: ast.Call) -> bool:
    """`log(1 - a.pow(2) + eps)`, `(1 - a ** 2).log()`."""
    given = [*call.args, *([call.func.value] if isinstance(call.func, ast.Attribute) else [])]
    return any(
        isinstance(at, ast.BinOp)
        and isinstance(at.op, ast.Sub)
        and isinstance(at.left, ast.Constant)
        and at.left.value in (1, 1.0)
        and _squares(at.right)
        for item in given
        for at in ast.walk(item)
    )


def _squares(node: ast.expr) -> bool:
    return any(
        (isinstance(at, ast.BinOp) and isinstance(at.op, ast.Pow))
        or (isinstance(at, ast.Call) and last_name(at.func) in ("pow", "square"))
        for at in ast.walk(node)
    )
