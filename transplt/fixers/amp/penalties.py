"""Gradient penalties that a function of the program works out by itself: they run in float32 inside of the block.

Nothing has to be unscaled there: `torch.autograd.grad` differentiates what no scaler has touched, and float32 keeps
small gradients. What networks have made under autocast is handed over as float32.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from transplt.fixers.amp.forward import is_compute
from transplt.fixers.amp.reading import own_nodes, reads, writes
from transplt.program.program import File, Program
from transplt.syntax.nodes import attribute_of, keyword_of, of_kind, plain_name
from transplt.syntax.scan import FUNCTIONS

_CUTS = frozenset({"data", "detach"})


@dataclass(frozen=True, slots=True)
class Penalty:
    """A statement `p = penalty(D, real, fake)` of a region, and the arguments that are half precision there."""

    stmt: ast.Assign
    half: tuple[ast.expr, ...]


def penalties(program: Program, file: File, regions: list[list[ast.stmt]], known: set[str]) -> list[Penalty]:
    """The statements of some regions that do nothing but call a function which differentiates for a penalty."""
    found: list[Penalty] = []
    outputs: set[str] = set()
    for region in regions:
        for item in parts(region):
            penalty = _penalty(program, file, item, outputs, known)
            if penalty is not None:
                found.append(penalty)
            elif not isinstance(item, ast.stmt):
                continue
            elif is_compute(program, file, item, known) or reads(item) & outputs:
                outputs |= writes(item)
    return found


def parts(region: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    """The statements of a region, and for each `if` its test and the statements of its branches."""
    for item in region:
        if isinstance(item, ast.If):
            yield item.test
            yield from parts([*item.body, *item.orelse])
        else:
            yield item


def _penalty(program: Program, file: File, item: ast.AST, outputs: set[str], known: set[str]) -> Penalty | None:
    if not isinstance(item, ast.Assign) or not isinstance(item.value, ast.Call) or item.value.keywords:
        return None
    function = program.callee(file, item.value)
    if not isinstance(function, FUNCTIONS) or function.decorator_list:
        return None
    owner = program.owner[function]
    grads = [
        call for call in of_kind(ast.Call, own_nodes(function))
        if owner.names.qualified(call.func) == "torch.autograd.grad"
    ]  # fmt: skip
    if not grads or not all(getattr(keyword_of(call, "create_graph"), "value", False) is True for call in grads):
        return None
    half: list[ast.expr] = []
    for argument in item.value.args:
        base = argument
        while attribute_of(func := base.func if isinstance(base, ast.Call) else base) in _CUTS:
            assert isinstance(func, ast.Attribute)
            base = func.value  # of fake.data, fake.detach()
        if not isinstance(base, (ast.Name, ast.Constant)):
            return None
        if plain_name(base) in outputs - known:
            half.append(argument)
    return Penalty(item, tuple(half))
