"""Formulas: what an expression computes, however a program spells it.

`Formula("x * rsqrt(mean(x * x, -1, True) + eps) * weight", "x eps weight")` is a text with holes. Text and program are
brought to one normal form: factors and summands in either order; `x ** 2`, `x.pow(2)` and `torch.square(x)` are
`x * x`; `a / b` is `a * (1 / b)` and `rsqrt(x)` is `1 / sqrt(x)`; `torch.f(x, y)` and `x.f(y)` are `f(x, y)`,
with arguments at their places. In a text, `torch.nn.functional.f(x)` is that function alone, and a hole that is called
stands for any function.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from transplt.syntax.names import Names

#: A hole, or a head with the terms that it is applied to; a head alone is a literal.
Term = str | tuple[Any, ...]
#: What stands in the holes.
Found = Mapping[str, ast.expr]
#: The terms that an expression computes, each with what stands in its holes.
Parts = Mapping[Term, Found]
#: A node of a program, or a term of its normal form over such nodes.
_Node = ast.expr | tuple[Any, ...]

#: What may be given by keyword, from the second place on.
_PARAMETERS = {"mean": ("dim", "keepdim")}


class Formula:
    """A text with holes; `parts` are the terms of its normal form that are more than a literal."""

    def __init__(self, text: str, holes: str) -> None:
        self.holes = holes.split()
        self.parts: dict[Term, None] = {}
        self.whole = self._term(ast.parse(text, mode="eval").body)

    def match(self, node: ast.AST, names: Names, guards: Mapping[str, Callable[[ast.expr], bool]]) -> Found | None:
        """What stands in the holes where a node computes the formula; guards say what may stand in a hole."""
        if not isinstance(node, ast.expr):
            return None
        return next(Reading(self, names, guards).ways(self.whole, node, {}), None)

    def _term(self, node: _Node) -> Term:
        match node:
            case ast.Name(id=name) if name in self.holes:
                self.parts[name] = None
                return name
            case ast.Call(func=ast.Name(id=name), args=args) if name in self.holes:
                node = ("()", node.func, *args)
            case ast.Call(func=ast.Attribute(), args=args):
                node = (ast.unparse(node.func), *args)
            case ast.expr():
                node = next(_views(node, lambda func: f"torch.{ast.unparse(func)}"), (ast.unparse(node),))
        term = (node[0], *map(self._term, node[1:]))
        if len(term) > 1:
            self.parts[term] = None
        return term


@dataclass(slots=True)
class Reading:
    """How the expressions of a program are read as a formula.

    `known` gives the parts that a node stands for (a name those of its value), None for what is read by itself; where
    it is given, it alone fills the holes.
    """

    formula: Formula
    names: Names
    guards: Mapping[str, Callable[[ast.expr], bool]] = field(default_factory=dict)
    known: Callable[[ast.expr], Parts | None] | None = None
    _answers: dict[ast.expr, Parts | None] = field(default_factory=dict)

    def parts(self, node: ast.expr) -> Parts:
        """The parts of the formula that an expression computes."""
        known = self._stands_for(node)
        if known is not None:
            return known
        first = {part: next(self.ways(part, node, {}), None) for part in self.formula.parts}
        return {part: found for part, found in first.items() if found is not None}

    def _stands_for(self, node: ast.expr) -> Parts | None:
        if self.known is not None and node not in self._answers:
            self._answers[node] = self.known(node)
        return self._answers.get(node)

    def ways(self, term: Term, node: _Node, found: Found) -> Iterator[Found]:
        """The ways in which a node computes a term, given what stands in some holes already."""
        if isinstance(term, tuple) and len(term) == 1:
            if isinstance(node, ast.expr) and ast.unparse(node) == term[0]:
                yield found
        elif isinstance(node, ast.expr) and (known := self._stands_for(node)) is not None:
            if term in known:
                yield from _joined(found, known[term])
        elif isinstance(term, tuple):
            for head, *operands in [node] if isinstance(node, tuple) else _views(node, self.names.qualified):
                if head == term[0] and len(operands) == len(term) - 1:
                    yield from self._each(term[1:], operands, found)
                    if head in ("*", "+"):
                        yield from self._each(term[1:], operands[::-1], found)
        elif isinstance(node, ast.expr) and self.known is None and (term not in self.guards or self.guards[term](node)):
            yield from _joined(found, {term: node})

    def _each(self, terms: Sequence[Term], nodes: Sequence[_Node], found: Found) -> Iterator[Found]:
        if not terms:
            yield found
            return
        for way in self.ways(terms[0], nodes[0], found):
            yield from self._each(terms[1:], nodes[1:], way)


def _views(node: ast.expr, qualified: Callable[[ast.expr], str | None]) -> Iterator[tuple[Any, ...]]:
    """The heads and operands as which the normal form has a node."""
    match node:
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            yield "*", left, right
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            yield "+", left, right
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=2)):
            yield "*", left, left
        case ast.BinOp(left=ast.Constant(value=1), op=ast.Div(), right=right):
            yield "1/", right
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            yield "*", left, ("1/", right)
        case ast.Call(func=func, args=args, keywords=keywords):
            name, given = called(node, qualified)
            places = _PARAMETERS.get(name, ())[max(len(given) - 1, 0) :]
            named = {keyword.arg: keyword.value for keyword in keywords}
            placed = [*given, *(named.pop(place) for place in places if place in named)]
            match name, given[1:]:
                case ("square", [] | [ast.Constant(value=2), *_]) | ("pow", [ast.Constant(value=2)]):
                    yield "*", given[0], given[0]
                case "rsqrt", _ if not named:
                    yield "1/", ("sqrt", *placed)
                case _ if not named:
                    yield name, *placed
            if not keywords:
                yield qualified(func), *args
                yield "()", func, *args


def called(call: ast.Call, qualified: Callable[[ast.expr], str | None]) -> tuple[str, list[ast.expr]]:
    """The name of a function of torch or of a method, with what it is given by place, the tensor first."""
    full = qualified(call.func) or ""
    if full.startswith("torch.") and call.args:
        return full.rpartition(".")[2], call.args
    return (call.func.attr, [call.func.value, *call.args]) if isinstance(call.func, ast.Attribute) else ("", [])


def _joined(found: Found, more: Found) -> Iterator[Found]:
    """Both, where the same stands in the holes that they share."""
    if all(name not in found or ast.dump(found[name]) == ast.dump(node) for name, node in more.items()):
        yield {**more, **found}
