"""Calls that run with an old torch and raise with those that torch_npu is there for.

Facts: rules/support/refused_calls.json. Beside them: autograd functions of the old style, whose methods are not static
("Legacy autograd function with non-static forward method", torch/csrc/autograd/python_function.cpp since torch 1.5).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from typing import Any

from transplt.base.settings import TORCH_VERSIONS
from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.flow.last_value import last_value, nearest_binding
from transplt.rules.releases import release_of
from transplt.rules.tables import read_table
from transplt.rules.versions import version_key
from transplt.syntax.names import Names, assigned_value
from transplt.syntax.nodes import called_name, index_in, keyword_of, lacks, last_name, of_kind, plain_name, shape
from transplt.syntax.scan import Scan, parent

_FUNCTIONS = frozenset({"torch.autograd.Function", "torch.autograd.function.Function"})


@cache
def _calls() -> dict[str, tuple[dict[str, Any], ...]]:
    found: dict[str, tuple[dict[str, Any], ...]] = {}
    for row in read_table("support/refused_calls.json")["calls"]:
        found[row["name"]] = (*found.get(row["name"], ()), row)
    return found


fixer = Fixer(
    __name__,
    code="NPU293",
    rank=365,
    needs=(b"torch",),
    words=("stft(", "torch.fft(", "torch.autograd", "verbose", "lr_scheduler", "onnx", "use_npu",
           "volatile", "_jit_get_operation",
           "Adam", "fractions", "time.clock", "import clock", "Sampler"),
)  # fmt: skip


@fixer.on(ast.Call, name=tuple(_calls()))
def refused(work: Work, call: ast.Call) -> Finds:
    """Report a call that the torch of the migration refuses."""
    yield from _refused_as(work, work.names.qualified(call.func), call)


@fixer.on(ast.ClassDef)
def refused_of_a_base(work: Work, node: ast.ClassDef) -> Finds:
    """Report `super().__init__(optimizer, last_epoch, verbose)`, which the class of torch refuses."""
    for name, call in calls_of_a_base(work.names, node):
        yield from _refused_as(work, name, call)


def _refused_as(work: Work, name: str | None, call: ast.Call) -> Finds:
    for row in refusals(name, call, work.scan):
        if since(first_torch(row), work.settings.torch_version):
            blocks = row.get("blocks", "")
            yield work.note(call.func, fixer.code, row["message"], api=row["name"], help=row["help"], blocks=blocks)


def calls_of_a_base(names: Names, owner: ast.ClassDef) -> Iterator[tuple[str, ast.Call]]:
    """The calls of `super().__init__` in a class whose only base is one of torch that the table has, with its name."""
    match owner.bases:
        case [ast.Subscript(value=base)] | [base]:
            name = names.qualified(base) or ""
        case _:
            return
    for call in of_kind(ast.Call, ast.walk(owner)) if name in _calls() else ():
        match call.func:
            case ast.Attribute(attr="__init__", value=ast.Call(func=ast.Name(id="super"))):
                yield name, call


def refusals(name: str | None, call: ast.Call, scan: Scan) -> Iterator[dict[str, Any]]:
    """The rows of the table that a call of the full name `name` meets; see `first_torch`."""
    for row in _calls().get(name or "", ()):
        if "as_one" in row:
            above = parent(call)
            wrong = isinstance(above, ast.Assign) and [*map(type, above.targets)] == [ast.Name]
        elif "whole" in row:
            index, name = row["index"], row["whole"]
            value = call.args[index] if shape(call)[0] > index else keyword_of(call, name)
            value = last_value(scan, value) if isinstance(value, ast.Name) else value  # `(0, 0.99)`, `(beta1, beta2)`
            wrong = isinstance(value, (ast.Tuple, ast.List)) and any(_may_be_whole(scan, each) for each in value.elts)
        elif "lacks" in row:
            wrong = lacks(call, row["lacks"], row["index"]) is True
        else:
            beyond = "index" in row and shape(call)[0] > row["index"]
            wrong = "called" in row or beyond or keyword_of(call, row["keyword"]) is not None
        if wrong:
            yield row


def _may_be_whole(scan: Scan, node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return type(node.value) is int
    if not isinstance(node, ast.Name):
        return False
    bindings = scan.scope_of(node).bindings.get(node.id, ())
    given = (_given_to(each.node) for each in bindings if each.kind == "assign")
    return any(type(each.value) is int for each in of_kind(ast.Constant, given))


def _given_to(store: ast.AST) -> ast.expr | None:
    """What a name is assigned, alone or as a part of `a, b = 0, c`."""
    display = parent(store)
    if isinstance(display, (ast.Tuple, ast.List)):
        match parent(display):
            case ast.Assign(value=ast.Tuple(elts=values) | ast.List(elts=values)):
                return values[index_in(display, "elts", store)] if len(display.elts) == len(values) else None
    return assigned_value(store)


def first_torch(row: dict[str, Any]) -> str:
    """The torch from which on a row holds; `none` where Pythons that have its name go with each of them."""
    if "python" not in row:
        return str(row["since"])
    gone = version_key(row["python"])
    oldest = ((version, release_of(version).pythons) for version in TORCH_VERSIONS)
    return next((version for version, pythons in oldest if pythons and version_key(pythons[0]) >= gone), "none")


def since(first: str, version: str) -> bool:
    """True for a torch that is no older than the first one."""
    return first != "none" and version_key(version) >= version_key(first)


@fixer.on(ast.ClassDef)
def methods_that_have_to_be_static(work: Work, node: ast.ClassDef) -> Finds:
    """Report an autograd function whose forward is a plain method."""
    if not any(work.names.qualified(base) in _FUNCTIONS for base in node.bases):
        return
    made = (each for each in of_kind(ast.Assign, node.body) if called_name(each.value) in _STATIC)
    if any(plain_name(at) == "forward" for each in made for at in each.targets):
        return
    for method in of_kind(ast.FunctionDef, node.body):
        if method.name == "forward" and not any(last_name(each) in _STATIC for each in method.decorator_list):
            yield work.note(
                node.bases[0],
                fixer.code,
                f"{node.name} is an old-style autograd function: torch refuses a forward that is not static",
                api="torch.autograd.Function",
                help="make forward and backward @staticmethod with ctx as the first argument, and call apply",
            )


#: `apply` looks forward up at the class: a class method with `ctx` as the second argument gets what a static one gets.
_STATIC = frozenset({"staticmethod", "classmethod"})


#: What a value of no dimension comes through: another number, or another type.
_STILL_A_NUMBER = frozenset({"mul", "mul_", "div", "div_", "float", "double", "detach", "clone", "cpu"})
_LONGEST_WAY = 6


@fixer.on(ast.Subscript)
def first_of_a_number(work: Work, node: ast.Subscript) -> Finds:
    """Report `prec1[0]`, where `prec1, prec5 = accuracy(...)` are sums of tensors with one dimension."""
    match node:
        case ast.Subscript(value=ast.Name() as name, slice=ast.Constant(value=0), ctx=ast.Load()):
            called = plain_name(_callee_unpacked_to(work, name))
            given = [each for each in work.scan.functions if each.name == called]
            if len(given) == 1 and _gives_numbers(work, given[0]):
                message = f"{called} returns scalar tensors: {name.id}[0] raises an error since torch 0.4"
                yield work.note(node, fixer.code, message, api="torch.Tensor", help=f"write {name.id}.item()")


def _callee_unpacked_to(work: Work, name: ast.Name) -> ast.expr | None:
    """What is called for the result of which a name is a part, by the nearest statement above that binds it."""
    display = parent(nearest) if isinstance(nearest := nearest_binding(work.scan, name), ast.Name) else None
    match parent(display) if isinstance(display, (ast.Tuple, ast.List)) else None:
        case ast.Assign(value=ast.Call(func=func)):
            return func
    return None


def _gives_numbers(work: Work, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """True for a function that returns a list of which each element is a tensor without a dimension."""
    nodes = [node for node in ast.walk(function) if isinstance(node, (ast.Return, ast.Call))]
    returned = [node.value for node in of_kind(ast.Return, nodes)]
    if len(returned) != 1:
        return False
    match returned[0]:
        case ast.ListComp(elt=each):
            return _is_a_number(work, each, _LONGEST_WAY)
        case ast.Name(id=held):
            calls = [node for node in of_kind(ast.Call, nodes) if len(node.args) == 1]
            appended = [call.args[0] for call in calls if ast.unparse(call.func) == f"{held}.append"]
            return bool(appended) and all(_is_a_number(work, each, _LONGEST_WAY) for each in appended)
    return False


def _is_a_number(work: Work, node: ast.expr | None, steps: int) -> bool:
    if node is None or not steps:
        return False
    match node:
        case ast.Name():
            return _is_a_number(work, last_value(work.scan, node), steps - 1)
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div(), right=right):
            return isinstance(right, ast.Constant) and _is_a_number(work, left, steps - 1)
        case ast.Call(func=ast.Attribute(value=value, attr=method)) if method in _STILL_A_NUMBER:
            return _is_a_number(work, value, steps - 1)
        case ast.Call(func=ast.Attribute(value=value, attr="sum" | "mean"), args=[given], keywords=[]):
            return ast.unparse(given) == "0" and _has_one_dimension(value)
    return False


def _has_one_dimension(node: ast.expr) -> bool:
    """True for `x.view(-1).float()`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in ("view", "reshape"):
            return [ast.unparse(each) for each in node.args] == ["-1"]
        if node.func.attr not in ("float", "double", "long", "int"):
            return False
        node = node.func.value
    return False
