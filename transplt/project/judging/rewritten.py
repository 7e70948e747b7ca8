"""Which functions were written anew, so that only a run can tell whether they compute the same."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from transplt.project.judging.reading import Scope
from transplt.project.judging.statements import TABLE, Statement
from transplt.rules.tables import read_table

#: What is done in a function, by the statements that do it.
Done = list[tuple[Statement, Counter[str]]]
#: A function of which so many statements differ both ways, more than one of so many, was written anew.
_MANY, _SHARE, _SEVERAL = 3, 3, 2
#: Arguments that a statement has from elsewhere.
_SPREAD = re.compile(r"[(,] ?\*\*\w")


def is_rewritten(
    place: Scope, sides: tuple[Done, Done], both: tuple[Counter[str], Counter[str]], size: int, own: AbstractSet[str]
) -> bool:
    """Whether a function was written anew: what is `both` less and more in it is a matter of form, many of its
    statements differ both ways, another function stands for several of them, or a comprehension for a loop or for what
    was repeated. `own`: functions of the port."""
    if _is_spelling(*both) or _is_of_form(*both, own) or _is_of_form(*both[::-1], own) or _is_put_in_one(sides, both):
        return True
    told = [{id(each): (each, counts) for each, counts in side if counts}.values() for side in sides]
    fewer, differ = min(map(len, told)), min(len({id(each) for each, _ in side}) for side in sides)
    apart_from_it = max(sum(each.place[1] != place[1] for each, _ in side) for side in told)
    shapes = [{*map(_repeats, side)} - {""} for side in told]
    looped = any("comprehension" in one - other and other - one for one, other in (shapes, shapes[::-1]))
    return bool(fewer) and (looped or apart_from_it >= _SEVERAL or (differ >= _MANY and _SHARE * differ > size))


def _is_of_form(few: Counter[str], many: Counter[str], own: AbstractSet[str]) -> bool:
    """Whether there are loops, containers and conditions alone on one side, or calls of functions that both programs
    have, and no numbers and nothing of arithmetic on the other."""
    table = read_table(TABLE)["operations"]
    flow, questions, called = {*table["ways"]}, {*table["questions"]}, {*own, "()"}
    if not (few and many and few.keys() <= flow | questions | called and (flow | called) & (few.keys() | many.keys())):
        return False
    known = {*flow, *questions, "()", "#True", "#False"}
    plain = all(word in known or (word[0] != "#" and word not in table["shown"]) for word in many)
    done = sum(count for word, count in many.items() if word[-1] != "=")
    return plain and (few.keys().isdisjoint(called) or few.total() < done)


def _is_put_in_one(sides: tuple[Done, Done], both: tuple[Counter[str], Counter[str]]) -> bool:
    """Whether statements became one with a condition, a container or a comprehension in it, and nothing else; or
    arguments come from elsewhere now."""
    spread = [any(_SPREAD.search(each.text) for each, _ in side) for side in sides]
    if any(both) and spread[0] != spread[1]:
        return True
    table = read_table(TABLE)["operations"]
    gone, new = both
    does = [each for each, counts in sides[1] if counts & new]
    known = new.keys() <= {*table["in one"], *table["questions"]}
    return bool(new and known and not gone and len(sides[0]) > len(does)) and not any(map(_chooses, does))


def is_form(words: Iterable[str]) -> bool:
    """Whether words are of loops, containers and conditions alone."""
    table = read_table(TABLE)["operations"]
    return {*words} <= {*table["ways"], *table["questions"]}


def _chooses(each: Statement) -> bool:
    """Whether a statement decides what is done below it, or which of several parts are taken."""
    return hasattr(each.node, "body") or any(getattr(node, "ifs", ()) for node in each.inside())


def asks_a_name(each: Statement) -> bool:
    """Whether a condition is a variable alone: what a function of several uses is given."""
    return isinstance(each.node, ast.If) and isinstance(each.parts[0], ast.Name)


def _repeats(done: tuple[Statement, Counter[str]]) -> str:
    """How a statement does something several times."""
    each, counts = done
    if any(isinstance(node, ast.comprehension) for node in each.inside()):
        return "comprehension"
    if any(isinstance(node, ast.Lambda) for node in each.inside()) and "map(" in each.text:
        return "loop"
    again = any(count >= _MANY for word, count in counts.items() if word[0].islower() or word[0] == "F")
    return "loop" if isinstance(each.node, ast.For) else "again" if again else ""


def _is_spelling(less: Counter[str], more: Counter[str]) -> bool:
    """Whether all operations that are others are known to be written in either way."""
    gone, new = ({word for word in side if word[0] not in "#("} for side in (less, more))
    words, rows = gone | new, read_table(TABLE)["spellings"]
    return bool(gone and new) and any(words & {*heads} and words <= {*heads, *rest} for heads, rest in rows)
