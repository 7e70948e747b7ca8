"""Where the values of a program come from, and where its variables are read."""

from __future__ import annotations

import ast
import textwrap

import pytest

from transplt.base.settings import Settings
from transplt.engine.engine import index_source
from transplt.flow.facts import ProjectFacts
from transplt.program.program import Program
from transplt.program.programs import programs_of
from transplt.program.torchscript import scripted_in
from transplt.program.variable_values import origins, uses, values_of


def program_of(source: str, **others: str) -> Program:
    files = {"main.py": source, **{f"{name}.py": text for name, text in others.items()}}
    settings = Settings(tune=(("hf32", ""),))
    facts = [index_source(textwrap.dedent(text).encode(), path, settings) for path, text in files.items()]
    return programs_of(ProjectFacts.join(facts)).program("main.py")


def the(program: Program, name: str) -> ast.expr:
    """What `look(...)` is called with in the main file."""
    call = next(call for call in program.files[0].scan.calls if getattr(call.func, "id", "") == name)
    return call.args[0]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a = make()\nlook(a)\n", ["a"]),
        ("a = make()\nb = a\nlook(b)\n", ["a"]),
        ("a = None\na = make()\nlook(a)\n", ["a"]),
        ("a = make()\nb = None\nb = a\nlook(b)\n", ["a"]),
        ("a = make()\nb = make()\nc = a\nc = b\nlook(c)\n", ["a", "b"]),
        ("a = make()\nb = a\nb = make()\nlook(b)\n", ["a", "b"]),
        ("a = make()\na = a\nlook(a)\n", ["a"]),
        ("def run(x):\n    look(x)\n\n\na = make()\nrun(a)\n", ["a"]),
        ("def run(x):\n    look(x)\n\n\na = make()\nrun(a)\nrun(a)\n", ["a"]),
        ("def run(x):\n    look(x)\n", ["x"]),
        ("a = b\nb = a\nlook(b)\n", []),
        ("class T:\n  def __init__(self, a):\n    self.a = a\n    look(self.a)\n\n\nn = make()\nT(n)\n", ["n"]),
        ("from other import a\nlook(a)\n", ["a"]),
        ("look(make())\n", []),
    ],
)
def test_where_something_was_made(source: str, expected: list[str]) -> None:
    program = program_of(source, other="a = make()\n")
    found = origins(program, program.slot(program.files[0], the(program, "look")))
    assert sorted(slot[2] for slot in found) == expected


def test_what_a_variable_was_given() -> None:
    program = program_of("from other import a\nb = a\nb = 3\nlook(b)\n", other="a = make()\n")
    found = values_of(program, program.files[0], the(program, "look"))
    assert sorted((file.path, ast.unparse(node)) for file, node in found) == [("main.py", "3"), ("other.py", "make()")]


def test_where_a_variable_is_read() -> None:
    source = "from other import a\nprint(a)\na.b = a\n\n\ndef f(a):\n    return a\n"
    program = program_of(source, other="a = 1\na + 2\n")
    slot = program.slot(program.files[1], program.files[1].scan.names["a"][0])
    assert slot is not None
    assert [(file.path, node.lineno, node.col_offset) for file, node in uses(program, {slot})] == [
        ("main.py", 2, 6), ("main.py", 3, 0), ("main.py", 3, 6), ("other.py", 2, 0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "wraps",
    [
        "net = Net()\nnet = wrap(net)\n",
        "net = wrap(Net())\nnet = parallel(net, 1)\nnet = wrap(net)\n",
        "def made(net):\n    return made(net)\n\n\nnet = made(Net())\nnet = Net()\n",
    ],
)
def test_what_is_compiled_may_be_wrapped_and_keep_its_name(wraps: str) -> None:
    head = "import torch\nfrom other import parallel, wrap\n\n\nclass Net(torch.nn.Module):\n    pass\n\n\n"
    program = program_of(f"{head}{wraps}torch.jit.script(net)\n")
    assert scripted_in(program) == {("main.py", 5)}
