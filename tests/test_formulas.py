"""Formulas: which expressions compute them, and what stands in the holes."""

from __future__ import annotations

import ast

import pytest

from transplt.base.text.source import read_source
from transplt.syntax.formulas import Formula, Parts, Reading
from transplt.syntax.names import Names
from transplt.syntax.nodes import is_dotted
from transplt.syntax.parse import parse
from transplt.syntax.scan import scan

NORM = Formula("x * rsqrt(mean(x * x, -1, True) + eps) * weight", "x eps weight")
GATE = Formula("torch.nn.functional.silu(gate) * up", "gate up")
TURN = Formula("x * cos + turn(x) * sin", "x cos sin turn")


def read(text: str) -> tuple[ast.expr, Names]:
    source = read_source(f"import torch\nimport torch.nn.functional as F\n{text}\n".encode())
    found = scan(source, parse(source))
    line = found.tree.body[-1]
    assert isinstance(line, ast.Expr)
    return line.value, Names(found)


def holes(formula: Formula, text: str) -> dict[str, str]:
    found = formula.match(*read(text), {"x": is_dotted})
    return {hole: ast.unparse(node) for hole, node in found.items()} if found is not None else {}


@pytest.mark.parametrize(
    "square", ["a.b * a.b", "a.b ** 2", "a.b ** 2.0", "a.b.pow(2)", "torch.square(a.b)", "a.b.square()"]
)
@pytest.mark.parametrize(
    "mean", ["({}).mean(-1, True)", "torch.mean({}, dim=-1, keepdim=True)", "({}).mean(-1, keepdim=True)"]
)
@pytest.mark.parametrize(
    "norm",
    [
        "a.b * torch.rsqrt({} + e) * w(0)",
        "w(0) * ((e + {}).rsqrt() * a.b)",
        "w(0) * (a.b / ({} + e).sqrt())",
        "a.b * (1 / torch.sqrt(e + {})) * w(0)",
    ],
)
def test_spellings_of_one_formula(square: str, mean: str, norm: str) -> None:
    assert holes(NORM, norm.format(mean.format(square))) == {"x": "a.b", "eps": "e", "weight": "w(0)"}


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (NORM, "a * torch.rsqrt((a * b).mean(-1, True) + e) * w"),  # one hole, two tensors
        (NORM, "a * torch.rsqrt((a * a).mean(-1) + e) * w"),
        (NORM, "a * torch.rsqrt((a * a).mean(1, True) + e) * w"),
        (NORM, "a * torch.rsqrt((a * a).mean(-1, True, x=1) + e) * w"),
        (NORM, "a * torch.rsqrt((a ** 3).mean(-1, True) + e) * w"),
        (NORM, "a * torch.inverse((a * a).mean(-1, True) + e) * w"),
        (NORM, "a / torch.rsqrt((a * a).mean(-1, True) + e) * w"),
        (NORM, "f(a) * torch.rsqrt((f(a) * f(a)).mean(-1, True) + e) * w"),  # what no guard lets into the hole
        (GATE, "g.silu() * u"),
        (GATE, "torch.silu(g) * u"),
        (GATE, "F.silu(g, inplace=True) * u"),
        (GATE, "F.silu(g) + u"),
        (TURN, "q * c + turn(k) * s"),
        (TURN, "q * c - turn(q) * s"),
        (TURN, "q * c + turn(q, 1) * s"),
    ],
)
def test_expressions_that_compute_something_else(formula: Formula, text: str) -> None:
    assert holes(formula, text) == {}


def test_functions() -> None:
    assert holes(GATE, "u[0] * F.silu(g + 1)") == {"gate": "g + 1", "up": "u[0]"}
    assert holes(TURN, "my.turn(q) * s(1) + c * q") == {"x": "q", "cos": "c", "sin": "s(1)", "turn": "my.turn"}


def test_parts_of_a_formula_that_names_stand_for() -> None:
    names: dict[str, Parts] = {"x": {"x": {}}}

    def known(node: ast.expr) -> Parts | None:
        return names.get(node.id, {}) if isinstance(node, ast.Name) else None

    def parts(text: str) -> Parts:
        node, resolver = read(text)
        return Reading(NORM, resolver, known=known).parts(node)

    for name, text in (("y", "x"), ("square", "x * y"), ("mean", "torch.mean(square, -1, True)")):
        names[name] = parts(text)
        assert len(names[name]) == 1
    assert list(names["mean"]) == [("mean", ("*", "x", "x"), ("-1",), ("True",))]
    assert parts("square.mean(-1, True)") == names["mean"]
    assert parts("z * x") == parts("mean + 1") == {}, "only what is known fills a hole"
