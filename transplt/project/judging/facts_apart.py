"""What functions do, one thing at a time, and what only one of two functions does."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from transplt.project.judging.forms import EITHER_WAY, Form, nodes
from transplt.project.judging.statements import Statement, neutral

#: Facts that stand for each other have as much in common.
_ALIKE = 0.4
Around = tuple[tuple[Form, Form], ...]


class Fact(NamedTuple):
    """Something that a function does or gives: in one form, and the statement that says so."""

    form: Form
    at: Statement


def parts_apart(one: Form, other: Form, around: Around = ()) -> Iterator[tuple[Form, Form, Around]]:
    """The smallest parts in which two forms differ, whatever the order of what has none, and what is around them."""
    if one == other:
        return
    if one[0] != other[0] or len(one) != len(other) or len(one) == 1:
        yield one, other, around
        return
    left, right = [*one[1:]], [*other[1:]]
    if one[0] in EITHER_WAY or one[0] == "$if":
        for each in one[1:]:
            if each in right:
                left.remove(each)
                right.remove(each)
        left.sort(key=lambda form: -sum(1 for _ in nodes(form)))
        right = [right.pop(max(range(len(right)), key=lambda at: _share(each, right[at]))) for each in left]
    for each, two in zip(left, right, strict=True):
        yield from parts_apart(each, two, ((one, other), *around))


def _share(one: Form, other: Form) -> float:
    """How much two forms have in common."""
    mine, theirs = Counter(nodes(one)), Counter(nodes(other))
    return 2 * (mine & theirs).total() / (mine + theirs).total()


def left_over(one: list[Fact], other: list[Fact], names: tuple[set[str], set[str]]) -> tuple[list[Fact], list[Fact]]:
    """What only one of two functions does. `names`: all names of both; another name of a variable is no difference."""
    known = dict[str, str]()
    heads = {each.form[:2] for each in one} & {each.form[:2] for each in other}
    one, other = ([each for each in side if each.form[0] != "held" or each.form[:2] in heads] for side in (one, other))
    words = [{word[1:] for each in side for word in nodes(each.form) if word[0] == "$"} for side in (one, other)]
    for _ in range(len(one) + 1):
        told = [Fact(_renamed(each.form, known), each.at) for each in other]
        sides = [*_more(one, told)], [*_more(told, one)]
        found = {
            (left[0][1:], right[0][1:])
            for before, after in closest(*sides) for left, right, _ in parts_apart(before.form, after.form)
            if (left[0][:1], len(left)) == (right[0][:1], len(right)) == ("$", 1)
        }
        both = names[1] | words[1], names[0] | words[0] | known.keys()
        new = [(name, old) for old, name in sorted(found) if old not in both[0] and name not in both[1]]
        if not new:
            return sides
        known |= dict(new[:1])
    return sides


def _more(facts: Sequence[Fact], others: Iterable[Fact]) -> Iterator[Fact]:
    counts = Counter(each.form for each in facts) - Counter(each.form for each in others)
    for each in facts:
        if counts[each.form] > 0:
            counts[each.form] -= 1
            yield each


def _renamed(form: Form, known: dict[str, str]) -> Form:
    if not known or not any(word[:1] == "$" and word[1:] in known for word in nodes(form)):
        return form
    head = f"${known.get(form[0][1:], form[0][1:])}" if form[0][:1] == "$" else form[0]
    return (head, *(_renamed(each, known) for each in form[1:]))


def closest(one: list[Fact], other: list[Fact]) -> Iterator[tuple[Fact, Fact]]:
    """Facts that stand for each other."""
    left = [*other]
    for each in one:
        given = each.form[: 2 if each.form[0] in ("return", "held") else 1]  # what is returned in the same place
        shares = [(_share(each.form, two.form), -at) for at, two in enumerate(left) if two.form[: len(given)] == given]
        if shares and ((best := max(shares))[0] >= _ALIKE or len(given) > 1):
            yield each, left.pop(-best[1])


def share_body(one: ast.AST, other: ast.AST) -> bool:
    """Whether two conditions have something below them in common; anything else has nothing below it."""
    if not isinstance(one, ast.If) or not isinstance(other, ast.If):
        return True
    below = [{neutral(ast.unparse(each)) for each in node.body} for node in (one, other)]
    return not below[0].isdisjoint(below[1])
