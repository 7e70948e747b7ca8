"""After which optimizer steps a pass over a batch is counted."""

from __future__ import annotations

import ast

import pytest

from transplt.base.text.source import read_source
from transplt.fixers.tunings.max_steps import last_steps
from transplt.syntax.parse import parse
from transplt.syntax.scan import scan


def counted(text: str) -> list[str]:
    source = read_source(text.encode())
    found = scan(source, parse(source), "train.py")
    steps = [node for node in ast.walk(found.tree) if isinstance(node, ast.Expr) and ".step(" in ast.unparse(node)]
    return [ast.unparse(step) for step in last_steps(steps)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.step()\n", ["a.step()"]),
        ("a.step()\nb.step()\n", ["b.step()"]),
        ("if c:\n    a.step()\nelse:\n    b.step()\n", ["a.step()", "b.step()"]),
        ("if c:\n    if d:\n        a.step()\nelse:\n    b.step()\n", ["a.step()", "b.step()"]),
        ("if c:\n    a.step()\n    b.step()\nelse:\n    d.step()\n", ["b.step()", "d.step()"]),
        ("if c:\n    a.step()\nelif d:\n    b.step()\nelse:\n    e.step()\n", ["a.step()", "b.step()", "e.step()"]),
        ("if c:\n    a.step()\nelse:\n    b.step()\nd.step()\n", ["d.step()"]),
        ("if c:\n    a.step()\nif d:\n    b.step()\n", ["b.step()"]),
        ("", []),
    ],
)
def test_the_steps_that_end_a_pass(text: str, expected: list[str]) -> None:
    assert counted(text) == expected
