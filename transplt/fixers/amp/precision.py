"""What half precision would make wrong, and what would be compared across precisions, in code under autocast.

The log-probabilities of a policy are worked out twice: where it acts, which stays in float32, and in the loss; their
ratio has to be 1 before the first step. Those of a Gaussian behind a tanh take the logarithm of 1 - tanh(u) ** 2, of
which float16 keeps nothing from u = 4 on. A Gram matrix of pictures sums over all of their places, beyond 65504.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from transplt.fixers.amp.reading import own_nodes
from transplt.program.environments import acts_in_one
from transplt.program.gradients import may_stop_gradients
from transplt.program.program import File, Program
from transplt.program.variable_values import values_of
from transplt.syntax.nodes import called_name, last_name, plain_name
from transplt.syntax.scan import FUNCTIONS

_BY_HAND = (
    "keep this training in float32, or write autocast around the networks only and convert their outputs to float32 "
    "after it: .float()"
)
GRAM = "a Gram matrix sums over all pixels of an image, which does not fit half precision"
_GRAM_BY_HAND = (
    "compute the Gram matrix in float32: `with torch.autocast(\"npu\", enabled=False):` around it, its features with "
    ".float(); or keep this training in float32"
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
    classes = [program.classes[name][1] for at, value in values if (name := program.class_of(at, value))]
    if classes:
        methods = ((cls, method) for cls in classes for method in cls.body)
        return [(program.owner[cls], method) for cls, method in methods if isinstance(method, FUNCTIONS)]
    return by_name.get(call.func.attr, []) if isinstance(call.func, ast.Attribute) else []


def gradients_off(program: Program, file: File, region: list[ast.stmt]) -> bool:
    """True when a part of what a region runs is without gradients.

    Autocast keeps the weights that it casts: those that it cast without gradients get none behind that either (pytorch
    issues 65766 and 112583, mended at the end of 2025).
    """
    return any(may_stop_gradients(call) for _, call in calls_under(program, file, region))


def needs_digits(program: Program, file: File, region: list[ast.stmt]) -> tuple[ast.Call | None, str, str] | None:
    """The call for which a region must not run in half precision (None for one in another file), why, what to do."""
    for node in region:
        for call in own_nodes(node):
            if isinstance(call, ast.Call) and acts_in_one(program, file, call):
                why = "the environment takes its steps between the forward pass and the loss"
                return call, f"{why}: the actions of the policy would depend on rounding", _BY_HAND
    for at, call in calls_under(program, file, region):
        there = "" if at is file else f" ({at.path}:{call.lineno})"
        here = call if at is file else None
        if last_name(call.func) == "log_prob":
            why = "log-probabilities lose digits when their inputs are in half precision"
            if _has_environment(program):
                why = "log-probabilities are compared with float32 ones that the same policy gave when it acted"
            return here, f"{why}{there}", _BY_HAND
        if last_name(call.func) in ("log", "log1p") and _near_zero(call):
            return here, f"the logarithm of 1 - x ** 2 has no digits left in half precision{there}", _BY_HAND
    for at, function in _bodies(program, file, region):
        product = gram_matrix(at, function)
        if product is not None:
            there = "" if at is file else f" ({at.path}:{product.lineno})"
            here = product if at is file and isinstance(product, ast.Call) else None
            return here, f"{GRAM}{there}", _GRAM_BY_HAND
    return None


def gram_matrix(file: File, body: Iterable[ast.AST]) -> ast.Call | ast.BinOp | None:
    """The product of features with themselves over all places: `f = y.view(c, h * w)`, then `f.mm(f.t())`."""
    nodes = [at for item in body for at in own_nodes(item)]
    given: dict[str, list[ast.expr]] = {}
    for at in nodes:
        match at:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                given.setdefault(name, []).append(value)
    for at in nodes:
        pair = _factors(file, at)
        if pair is None:
            continue
        left, right = pair
        rights = [right, *given.get(plain_name(right), [])]
        mirrored = any(_transposed(item) == ast.unparse(left) for item in rights)
        lefts = [left, *given.get(plain_name(left), [])]
        if mirrored and any(map(_over_places, lefts)):
            assert isinstance(at, (ast.Call, ast.BinOp))
            return at
    return None


def _factors(file: File, node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    match node:
        case ast.BinOp(left=left, op=ast.MatMult(), right=right):
            return left, right
        case ast.Call(func=func) if last_name(func) not in ("mm", "bmm", "matmul"):
            return None
        case ast.Call(func=func, args=[left, right]) if (file.names.qualified(func) or "").startswith("torch."):
            return left, right
        case ast.Call(func=ast.Attribute(value=left), args=[right]):
            return left, right
    return None


def _transposed(node: ast.expr) -> str:
    """The text of `f` in `f.t()`, `f.transpose(1, 2)`, `f.T`."""
    match node:
        case ast.Attribute(value=inner, attr="T" | "mT"):
            return ast.unparse(inner)
        case ast.Call(func=ast.Attribute(value=inner, attr="t" | "transpose" | "permute")):
            return ast.unparse(inner)
        case ast.Call(func=ast.Attribute(value=inner, attr="contiguous")):
            return _transposed(inner)
    return ""


def _over_places(node: ast.expr) -> bool:
    """True for `y.view(c, h * w)`, `y.reshape(b, c, -1)`, `y.flatten(2)`: the last dimension holds all places."""
    match node:
        case ast.Call(func=func, args=[_, *_, last]) if last_name(func) in ("view", "reshape"):
            return ast.unparse(last) == "-1" or (isinstance(last, ast.BinOp) and isinstance(last.op, ast.Mult))
        case ast.Call(func=func, args=[*_, last]):
            return last_name(func) == "flatten" and ast.unparse(last) in ("1", "2")
    return False


def _bodies(program: Program, file: File, region: list[ast.stmt]) -> Iterator[tuple[File, list[ast.stmt]]]:
    """The statements of a region, and those of the functions that it calls."""
    yield file, region
    seen: set[int] = set()
    for at, call in calls_under(program, file, region):
        callee = program.callee(at, call)
        if isinstance(callee, FUNCTIONS) and id(callee) not in seen:
            seen.add(id(callee))
            yield program.owner[callee], callee.body


def _has_environment(program: Program) -> bool:
    """True for a program in which a policy acts: something has `env.step(action)` or draws its actions."""
    return any(
        acts_in_one(program, file, call) or last_name(call.func) in ("select_action", "choose_action", "act")
        for file in program.files
        for call in file.scan.calls
    )


def _near_zero(call: ast.Call) -> bool:
    """`log(1 - a.pow(2) + eps)`, `(1 - a ** 2).log()`."""
    given = [*call.args, *([call.func.value] if isinstance(call.func, ast.Attribute) else [])]
    for at in (at for item in given for at in ast.walk(item)):
        match at:
            case ast.BinOp(left=ast.Constant(value=1 | 1.0), op=ast.Sub(), right=right):
                if any(isinstance(each, ast.Pow) or called_name(each) in ("pow", "square") for each in ast.walk(right)):
                    return True
    return False
