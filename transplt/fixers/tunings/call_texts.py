"""A call that becomes a call of another function: arguments stay where they are, get another name, value or company."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from transplt.edits.trees.new_calls import Piece, rebuilt
from transplt.edits.trees.transform import Transform
from transplt.edits.work import Work
from transplt.syntax.nodes import by_place, hides_arguments

#: A call on one line is broken up where its line gets longer than this, and than the longest line of the file.
WIDE = 120


@dataclass(frozen=True, slots=True)
class Bound:
    """The arguments of a call by the parameter they go to, and their places among all arguments of the call."""

    values: dict[str, ast.expr]
    places: dict[str, int]

    def get(self, name: str) -> ast.expr | None:
        return self.values.get(name)


def bind(call: ast.Call, parameters: Sequence[str]) -> Bound | None:
    """Match arguments with parameters; None for stars and for arguments that the function does not have."""
    if hides_arguments(call):
        return None
    if len(call.args) > len(parameters):
        return None
    values = dict(zip(parameters, call.args, strict=False))
    for keyword in call.keywords:
        name = str(keyword.arg)
        if name in values or name not in parameters:
            return None
        values[name] = keyword.value
    order = by_place(values.values())
    return Bound(values, {name: order.index(node) for name, node in values.items()})


def rewritten(work: Work, call: ast.Call, callee: str, pieces: Sequence[Piece], tail: str = "") -> Transform:
    """Write a call of `callee` with `pieces` in place of a call, and `tail` behind it; the layout stays."""
    source = work.source
    start, end = source.extent(call)
    line = source.slice(source.line_starts[call.lineno - 1], start)
    indent = line[: len(line) - len(line.lstrip())]
    rest = source.utf8[end:].split(b"\n", 1)[0].decode()
    widest = max(WIDE, max((len(text) for text in source.text.splitlines()), default=0))

    def fits(text: str) -> bool:
        return max(map(len, f"{line}{text}{rest}".split("\n"))) <= widest

    return rebuilt(callee, pieces, tail, indent=indent, fits=fits)
