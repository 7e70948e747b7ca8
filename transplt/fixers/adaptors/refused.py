"""Where an operator of torch is given a type that the card refuses, and how a function of the helper is given it."""

from __future__ import annotations

import ast
from collections.abc import Callable

from transplt.edits.trees.new_calls import calling_with, operands_given_to
from transplt.edits.trees.transform import New
from transplt.edits.work import Work
from transplt.fixers.adaptors.writer import AdaptorWriter
from transplt.program.refused_types import Refused, refused_in
from transplt.rules.card_limits import card_named
from transplt.syntax.nodes import is_dotted, keyword_of, last_name

ANSWERED = ("NPU137",)


def refused_places(work: Work) -> list[Refused]:
    """The places in a file, with what the user's own card has run left out."""
    card = card_named(work.settings.hardware)
    ran = frozenset(work.settings.own_card)
    every = refused_in(work.file, work.project, card) if card else ()
    return [each for each in every if not {(f"aten::{each.operator}", dtype) for dtype in each.dtypes} <= ran]


def function_of(work: Work, node: ast.expr) -> str:
    """The function of torch that a call, a method of a tensor or an operator runs, as it is given to another function;
    empty where it writes into what it is given.
    """
    match node:
        case ast.BinOp(op=ast.MatMult()):
            return "torch.matmul"
        case ast.Call(func=func) if keyword_of(node, "out") is None and not last_name(func).endswith("_"):
            full = work.names.qualified(func) if is_dotted(func) else None
            if full is not None and full.startswith("torch."):
                return work.text(func)
            return f"torch.Tensor.{func.attr}" if isinstance(func, ast.Attribute) and full is None else ""
    return ""


def write_call(
    writer: AdaptorWriter, place: Refused, code: str, name: str, message: str, new: Callable[[str], New]
) -> None:
    """A call of a function of the helper in the place of what runs an operator; `new` makes it of that function."""
    node, work = place.node, writer.work
    if id(node) in work.taken:
        return
    callee = writer.helper(name, code, message, node)
    if not callee or not work.take(node):
        return
    holes = tuple(node.args) if isinstance(node, ast.Call) else ()
    writer.rewrite(node, code, message, new(callee), api=place.name, holes=holes)
    if not writer.keeps(node, code):
        writer.takes_care(node, ANSWERED)


def given_to(node: ast.expr, function: str, callee: str) -> New:
    """`callee(function, a, b)` in place of `function(a, b)`, `a.function(b)` and `a @ b`."""
    if isinstance(node, ast.BinOp):
        return operands_given_to(callee, function)
    return calling_with(callee, function, method=function.startswith("torch.Tensor."))
