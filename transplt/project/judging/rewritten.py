"""Which differences are sure: what is the same but for one small thing, in a function that has its form. The rest may
compute the same in another form, and only a run can tell."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from transplt.project.judging.forms import Form, apart, blank, nodes
from transplt.project.judging.otherwise import Otherwise
from transplt.project.judging.statements import TABLE, TRAINS, Statement, neutral
from transplt.rules.tables import read_table

#: What is done in a function, by the statements that do it.
Done = list[tuple[Statement, Counter[str]]]
#: So many kinds of operations, and names, are one small thing.
_KINDS, _NAMES = 4, 5
#: What no gradient comes from, with a block around it or without.
_OF_DATA = re.compile(r"\.data\b")
#: Functions that train nothing, and what tells processes apart.
MEASURES = re.compile(r"(?:vali|valid|validate|test|eval|evaluate|predict|infer|inference)$")
_OF_RANKS = re.compile(r"rank|distribut|world")
_NAME: Form = ("$",)
#: What is done, but for names and for what is stored under them.
_COUNTED = re.compile(r"(?!\$).*(?<!=)", re.DOTALL)


def one_thing(one: Form, other: Form) -> str:
    """What two forms, the same but for one thing that has a name, have more and less of in one place: `+`, `-`, or `+-`
    for one operation in the place of another. Empty where they differ in other ways."""
    parts = [*apart(one, other)]
    found = {(blank(left, "$"), blank(right, "$")) for left, right in parts} - {(_NAME, _NAME)}
    words = Counter(nodes(one)), Counter(nodes(other))
    both = words[0] - words[1], words[1] - words[0]
    moved = all(any(pair[side] == _NAME for pair in found) for side in (0, 1))
    names = [[word for word in each.elements() if word[0] == "$"] for each in both]
    said = any(sum(word[1:2].islower() for word in side) > _NAMES for side in names)
    if moved or said or any("$call" in word for side in names for word in side):
        return ""
    less, more = ([*filter(_COUNTED.fullmatch, each)] for each in both)
    if len({*less, *more}) > _KINDS or (less and more and not _is_operation(less, more, parts)):
        return ""
    return "+" * bool(more or not less) + "-" * bool(less)


def _is_operation(less: list[str], more: list[str], parts: list[tuple[Form, Form]]) -> bool:
    """Whether operators and numbers stand for others, or one call for another with what that was given."""
    table, words = read_table(TABLE), [*less, *more]
    known = {*table["operations"]["shown"], *table["operations"]["counts"]} - {"[]", "()", "where"}
    drawn = all(re.match(table["operations"]["drawn"], word) for word in words)
    named = len(less) == len(more) == 1 and all(drawn or left[1:] == right[1:] for left, right in parts)
    spelled = any({*words} <= {*heads, *rest} for heads, rest in table["spellings"])
    return all(word[0] == "#" or word in known for word in words) or (named and not spelled)


def undecided(told: Sequence[Otherwise], things: Mapping[int, str], ways: str, names: AbstractSet[str]) -> list[bool]:
    """Which of the things `told` of a function of both programs may come to the same. `things`: statements of the port,
    by id, that stand for others, and what they have more (`+`) and less (`-`); `ways`: the same of whole statements;
    `names`: those of the function of the original."""
    every = {*ways, *"".join(things.values())}
    form = len({*ways}) > 1 or not all(things.values()) or bool(ways and len(every) > 1)
    return [form or _may_be_form(each, names) for each in told]


def share_body(one: ast.AST, other: ast.AST) -> bool:
    """Whether two conditions have something below them in common; anything else has nothing below it."""
    if not isinstance(one, ast.If) or not isinstance(other, ast.If):
        return True
    below = [{neutral(ast.unparse(each)) for each in node.body} for node in (one, other)]
    return not below[0].isdisjoint(below[1])


def _may_be_form(told: Otherwise, names: AbstractSet[str]) -> bool:
    """Whether a thing that stands alone comes to nothing by itself: a value got a name, or has it no more; no gradient
    for what has none."""
    match told.at.node:
        case ast.Assign(targets=[ast.Name(id=name)]) if not (told.before and told.after):
            return told.after is None or name not in names
        case ast.With() as block:
            return _OF_DATA.search(ast.unparse(block)) is not None or MEASURES.search(told.at.scope) is not None
        case ast.If(test=test):
            asked = [name for each in ast.walk(test) if (name := getattr(each, "attr", ""))] or [ast.unparse(test)]
            alone = told.before is None or told.after is None or share_body(told.before.node, told.after.node)
            return not alone or all(map(_OF_RANKS.search, asked))
        case ast.Try(body=body):
            return told.after is None and not TRAINS.search(ast.unparse(ast.Module(body, [])))
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name))) if name.endswith("_") and told.before:
            return isinstance(told.before.node, ast.Assign)  # the same in place
    return False
