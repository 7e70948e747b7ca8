"""The lines that a line may hang on, the nearest first (transplt.proof.prove.slices)."""

from __future__ import annotations

from itertools import chain

import pytest

from transplt.proof.prove.slices import behind, behind_loop

STRAIGHT = "a = 1\nb = a\nc = 2\nd = b + c\n"
CALLED = "def part(x):\n    return x[rank::2]\nfor x in map(part, rows):\n    loss = net(x)\n"
STOPPED = "for x in rows:\n    loss = net(x)\n    low = loss.item()\n    if low > 4:\n        break\n    net.step()\n"
CHANGED = "hits = zeros(1)\nhits += count\ndist.all_reduce(hits)\nother = 1\nacc = hits / 2\n"
KEPT = "class A:\n    def put(self, x):\n        self.keys[0] = x\nsim = z @ memory.keys\n"
METHOD = "class A:\n    def test(self, x):\n        low = x\n        return low\nacc = server.test(y)\n"
OWN = "x = 1\ndef f(y):\n    x = y\n    return x\nz = f(2)\n"


@pytest.mark.parametrize(
    ("text", "line", "found"),
    [
        (STRAIGHT, 4, [4, 3, 2, 1]),
        (STRAIGHT, 2, [2, 1]),
        (CALLED, 4, [4, 3, 2, 1]),
        (STOPPED, 2, [2, 1, 4, 6, 3]),  # what ends a loop decides how often its lines run
        (CHANGED, 5, [5, 3, 2, 1]),  # a call may change what it is given
        (KEPT, 4, [4, 3, 2]),  # an attribute is one, whoever has it
        (OWN, 5, [5, 4, 3, 2]),
        (METHOD, 5, [5, 4, 3, 2]),  # whoever has a method of this name
        ("if a:\n    b = 1\nelse:\n    b = 2\n", 4, [4, 1]),
        ("try:\n    a = 1\nexcept E:\n    a = 2\nb = a\n", 5, [5, 4, 2]),
        ("with a as b:\n    c = b\n", 2, [2, 1]),
        (STRAIGHT, 9, []),
        ("a = (\n", 1, []),
    ],
)
def test_lines_that_a_line_hangs_on(text: str, line: int, found: list[int]) -> None:
    assert [*chain.from_iterable(behind(text, line))] == found


def test_a_statement_of_many_lines_is_one() -> None:
    assert [*behind("a = [\n    1,\n]\nb = a\n", 4)] == [range(4, 5), range(1, 4)]


@pytest.mark.parametrize(
    ("text", "line", "found"),
    [
        ("def f():\n    for x in y:\n        z += x\n    net.train()\n    return z\n", 2, 5),
        ("for x in y:\n    meter.add(x)\nprint(y)\nprint(meter.mean())\n", 1, 4),
        ("for x in y:\n    z += x\n", 1, 1),  # nothing follows
        ("for x in y:\n    z += x\nnet.train()\n", 1, 1),  # nothing reads it
        ("for x in y:\n    z += x\nz()\n", 2, 2),  # no loop
        ("if a:\n    b()\nelse:\n    for x in y:\n        z = x\n\n    c(z)\n", 4, 7),
    ],
)
def test_what_follows_a_loop(text: str, line: int, found: int) -> None:
    assert behind_loop(text, line) == found
