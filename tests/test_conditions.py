"""Whether a part of a condition follows from it is the same question, asked of all parts or of one."""

from __future__ import annotations

import ast

import pytest

from transplt.base.text.source import read_source
from transplt.syntax.conditions import Atom, implied, implies
from transplt.syntax.scan import scan

CONDITIONS = (
    "a",
    "not a",
    "a and b",
    "a or b",
    "not (a or b)",
    "a and not (b or not c)",
    "not (a and (b or c))",
    "x.is_cuda or y.is_cuda",
    "x.is_cuda or y.is_cpu",
    "x.is_cuda or y.is_cuda and z",
    "(n := a and b) or c",
    "(n := a) and b",
    "bool(a and b)",
    "all(t.is_cuda for t in ts) and b",
    "any([t and u for t in ts])",
    "(a and b) is True",
    "(a or b) == False",
    "a is not False and b",
    "(True if a else False) and b",
    "(False if a and b else True)",
    "(1 if a else 2) and b",
    "f(a and b) and c",
    "a < b and c == 1",
)


def scanned(text: str) -> ast.Module:
    source = read_source(text.encode())
    tree = ast.parse(text)
    return scan(source, tree).tree


@pytest.mark.parametrize("text", CONDITIONS)
def test_of_one_part_is_said_what_is_said_of_all(text: str) -> None:
    tree = scanned(f"if {text}: pass")
    assert isinstance(tree.body[0], ast.If)
    test = tree.body[0].test
    parts = [node for node in ast.walk(test) if isinstance(node, ast.expr)]
    for truth in (True, False):
        for perhaps in (True, False):
            found = {(id(atom.node), atom.truth) for atom in implied(test, truth, perhaps=perhaps)}
            for part in parts:
                for value in (True, False):
                    assert implies(test, truth, Atom(part, value), perhaps=perhaps) == ((id(part), value) in found)


def test_a_part_of_something_else_follows_from_nothing() -> None:
    tree = scanned("if a and b: c")
    statement = tree.body[0]
    assert isinstance(statement, ast.If) and isinstance(statement.body[0], ast.Expr)
    assert not implies(statement.test, True, Atom(statement.body[0].value, True))
