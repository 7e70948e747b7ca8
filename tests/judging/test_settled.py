"""Which differences a run settles: those that it came to in both programs."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from tests.judging.test_judge import ORIGINAL, PORT, judged
from transplt.base.finding import Finding, Level, Span
from transplt.base.render.verdict import Verdict, Word
from transplt.project.judging.otherwise import Otherwise
from transplt.project.judging.settled import Reached, Way, is_compared
from transplt.project.judging.statements import Statement, statements_of
from transplt.proof.prove.found import Findings, Part
from transplt.proof.prove.proof import Proof

Ran = dict[str, set[int]]
FOUND = Finding("m.py", Span(1, 1, 1, 1, 0, 0), "NPU881", Level.INFO, "loss: `loss = f(x)` was added", "loss")


def first(text: str) -> Statement:
    return statements_of(ast.parse(text), "m.py")[0]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("x = f(\n    1)\n", [(1, 2)]),
        ("if x:\n    f()\nelse:\n    g()\n    h()\n", [(1, 1), (2, 2), (4, 4)]),
        ("if x:\n    y = 1\nelse:\n    y = 2\n", [(1, 4), (2, 2), (4, 4)]),
        ("if x:\n    if y:\n        f()\n", [(1, 1), (2, 3), (3, 3)]),  # all that is in a new block
        ("try:\n    f()\nexcept KeyError:\n    g()\n", [(2, 2), (4, 4)]),
        ("def f(x=2):\n    if x:\n        return 1\n    return 2\n", [(2, 3)]),
        ("for x in y: f(x)\n", [(1, 1)]),
    ],
)
def test_what_has_to_run_of_what_one_side_has(text: str, lines: list[tuple[int, int]]) -> None:
    reached = Reached()
    reached.add(FOUND, Otherwise(None, first(text)), {})
    assert sorted(next(iter(reached.ways.values()))) == [Way(1, "m.py", *each) for each in lines]


@pytest.mark.parametrize(
    ("ran", "settled"),
    [
        (({"o.py": {1}}, {"m.py": {1}}), True),
        (({"o.py": {1}}, {}), False),
        (({}, {"m.py": {1}}), False),
        (({"o.py": {2}}, {"m.py": {1}}), False),
    ],
)
def test_both_programs_have_to_come_to_it(ran: tuple[Ran, Ran], *, settled: bool) -> None:
    reached = Reached()
    reached.add(FOUND, Otherwise(first("x = f(1)\n"), first("x = f(2)\n")), {"m.py": "o.py"})
    assert reached.watched() == ({"o.py": [1]}, {"m.py": [1]})
    assert reached.settles(FOUND, Proof(ran=ran)) == settled
    assert Reached().settles(FOUND, Proof())  # what has no lines of its own, such as an option that is gone


@pytest.mark.parametrize(
    ("message", "scheduled", "settled"),
    [
        ("learning rate: `scheduler = StepLR(o, 9)` was added", False, False),
        ("learning rate: `scheduler = StepLR(o, 9)` was added", True, True),
        ("training steps: `sched.step()` was added", False, False),
        ("loss: `loss = f(x)` was added", False, True),
    ],
)
def test_a_schedule_is_settled_where_a_learning_rate_changed(message: str, *, scheduled: bool, settled: bool) -> None:
    part = Part("one", Verdict(Word.EQUAL, ""), Findings(scheduled=scheduled))
    assert Reached().settles(replace(FOUND, message=message), Proof([part])) == settled


@pytest.mark.parametrize(("text", "needs"), [("if sampler:\n    sampler.set_epoch(1)\n", True), ("x = f()\n", False)])
def test_what_several_processes_come_to(text: str, *, needs: bool) -> None:
    reached = Reached()
    reached.add(FOUND, Otherwise(statements_of(ast.parse(text), "o.py")[-1], None), {})
    assert reached.needs_ranks(FOUND) == needs


CLEARS = "    optimizer.zero_grad()\n"


@pytest.mark.torch
@pytest.mark.parametrize(
    ("old", "new", "word", "said"),
    [
        (CLEARS, f"{CLEARS}    if step > 9:\n        data = data / 2\n", "not decided", "does not settle: main.py:"),
        (CLEARS, f"{CLEARS}    if len(data):\n        data = data / 1\n", "accepted", "equal: 4 steps"),
        (CLEARS, f"{CLEARS}    if step < 9:\n        data = data / 1\n", "not decided", "does not settle: main.py:"),
        (f"{CLEARS}    if step > 9:\n        data = data / 2\n", CLEARS, "not decided", "does not settle: main.py:"),
    ],
    ids=["a branch that no run enters", "one that it enters", "one that asks for a count", "one of the original alone"],
)
def test_what_no_run_came_to_is_left_to_look_at(old: str, new: str, word: str, said: str, tmp_path: Path) -> None:
    original, port = ORIGINAL.replace(CLEARS, old), PORT.replace(CLEARS, new)
    _, table = judged(tmp_path, port, "--prove", "main.py", original=original)
    assert (table["badge"]["message"], said in table["sentence"]) == (word, True), table["sentence"]


@pytest.mark.parametrize(
    ("theme", "text", "printed", "saved", "settled"),
    [
        ("loss", "def train():\n    loss = f(x)\n", 0, 0, True),
        ("loss", "class Net:\n    def validate(self):\n        loss = f(x)\n", 0, 3, False),
        ("loss", "class Net:\n    def validate(self):\n        loss = f(x)\n", 2, 0, True),
        ("metric", "def train():\n    acc = f(x)\n", 0, 3, False),
        ("computing", "def train():\n    kept.append(f(x))\n", 0, 3, False),
        ("computing", "def push(self):\n    self.buffer.append(f(x))\n", 0, 3, True),
        ("checkpoint", "torch.load(x)\n", 2, 0, False),
        ("training steps", "if os.path.isfile(x): step()\n", 2, 3, False),
        ("settings", "width = 4\n", 2, 3, False),
    ],
)
def test_equal_steps_settle_what_was_compared(
    theme: str, text: str, printed: int, saved: int, *, settled: bool
) -> None:  # fmt: skip
    each = statements_of(ast.parse(text), "m.py")[-1]
    each = first(text) if isinstance(first(text).node, ast.If) else each
    assert is_compared(replace(FOUND, message="", api=theme), Otherwise(None, each), printed, saved) == settled


@pytest.mark.parametrize(
    ("old", "new", "settled"),
    [
        ("n = 60", "n = 15", False),
        ("accuracy = f(x)", "accuracy = max(f(x), best)", False),
        ("print(np.mean(losses))", "print(np.min(losses))", False),
        ("kept = f(x)", "kept = f(x).clamp(max=9)", False),
        ("y = x.max(1)[1]", "y = x.argmax(1)", True),
        ("y = f(x)[0]", "y = g(x)[1]", True),
        ("if a: f()", "if a and epoch == 0: f()", False),
        ("if a: f()", "if a and b: f()", True),
    ],
)
def test_what_shows_in_some_rounds_alone_is_not_settled(old: str, new: str, *, settled: bool) -> None:
    both = Otherwise(first(f"{old}\n"), first(f"{new}\n"))
    assert is_compared(replace(FOUND, message="", api="computing"), both, 2, 2) == settled
