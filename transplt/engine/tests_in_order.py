"""Tests that stand one behind the other, of which each has to turn out in one way for what is behind it.

The place behind 10,000 of them asks for the first that does not, as do the places before: each test is asked once.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

#: The index of a test in its series, the test, and whether it has to hold.
Test = tuple[int, ast.expr, bool]
#: The reason why a test does not turn out as it has to; empty where it may.
Ask = Callable[[ast.expr, bool], str]


@dataclass(slots=True)
class Series:
    """Of the tests that are `lasting`, the same for whoever asks, `asked` may turn out well, and `found` does not.

    `isinstance` is answered by the uses of a class, and those by who asks.
    """

    every: list[Test]
    lasting: list[Test] = field(init=False)
    others: list[Test] = field(init=False)
    asked: int = 0
    found: tuple[int, str] | None = None

    def __post_init__(self) -> None:
        depends = [any(getattr(node, "id", "") == "isinstance" for node in ast.walk(test)) for _, test, _ in self.every]
        self.lasting = [each for each, varies in zip(self.every, depends, strict=True) if not varies]
        self.others = [each for each, varies in zip(self.every, depends, strict=True) if varies]

    def first(self, index: int, ask: Ask, *, alone: bool) -> str:
        """The reason of the first test in front of an index that has one. Not `alone`: somebody waits for the answer to
        another question, and what is answered now does not last.
        """
        if not alone:
            return _first(self.every, index, ask)
        while self.found is None and self.asked < len(self.lasting) and self.lasting[self.asked][0] < index:
            at, test, wanted = self.lasting[self.asked]
            self.asked += 1
            if words := ask(test, wanted):
                self.found = at, words
        at, words = self.found if self.found is not None and self.found[0] < index else (index, "")
        return _first(self.others, at, ask) or words


def _first(tests: list[Test], index: int, ask: Ask) -> str:
    for at, test, wanted in tests:
        if at >= index:
            break
        if words := ask(test, wanted):
            return words
    return ""


class InOrder:
    """The series of one file, by what holds each."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], Series] = {}

    def tests(self, key: tuple[int, int], make: Callable[[], list[Test]]) -> Series:
        """The series under a key; it is made when somebody asks first."""
        if key not in self._known:
            self._known[key] = Series(make())
        return self._known[key]


def operands(above: ast.BoolOp) -> list[Test]:
    """The operands of `and` and `or`, each of which is met where those before it hold, or fail."""
    return [(index, value, isinstance(above.op, ast.And)) for index, value in enumerate(above.values)]


def passing(block: list[ast.stmt]) -> list[Test]:
    """The tests of a block that have to fail for what stands behind them."""
    found: list[Test] = []
    for index, each in enumerate(block):
        match each:  # not where it raises or says why, as what has to be given does: a switch that is on is given
            case (
                ast.If(test=test, body=[ast.Return() | ast.Continue()], orelse=[])
                | ast.If(test=ast.Attribute() as test, body=[*_, ast.Return()], orelse=[])
            ):
                found.append((index, test, False))
    return found
