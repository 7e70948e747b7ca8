"""Which differences are sure: what is the same but for one small thing, in a function that has its form. The rest may
compute the same in another form, and only a run can tell."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from transplt.project.judging.forms import Form, apart, nodes
from transplt.project.judging.otherwise import Otherwise
from transplt.project.judging.statements import TABLE, Statement
from transplt.rules.tables import read_table

#: What is done in a function, by the statements that do it.
Done = list[tuple[Statement, Counter[str]]]
#: So many kinds of operations, and names, are one small thing.
_KINDS, _NAMES = 4, 5
#: What no gradient comes from, with a block around it or without.
_OF_DATA = re.compile(r"\.data\b")


def one_thing(one: Form, other: Form) -> str:
    """What two forms, the same but for one thing that has a name, have more and less of in one place: `+`, `-`, or `+-`
    for one operation in the place of another. Empty where they differ in other ways."""
    found = {(_blank(left), _blank(right)) for left, right in apart(one, other)} - {("$", "$")}
    if any(left == "$" for left, _ in found) and any(right == "$" for _, right in found):
        return ""  # something has another place
    words = Counter(nodes(one)), Counter(nodes(other))
    gone, new = words[0] - words[1], words[1] - words[0]
    if any(sum(count for word, count in each.items() if word[0] == "$" and word[1:2].islower()) > _NAMES for each in (gone, new)):
        return ""
    if any(word.startswith("$call ") for word in gone + new):
        return ""
    less, more = ({word for word in each if word[0] != "$" and word[-1] != "="} for each in (gone, new))
    table = read_table(TABLE)["operations"]
    known = {*table["shown"], *table["counts"]} - {"[]", "()", "where"}
    named = len(found) == 1 and len(less) == len(more) == 1 and not _is_spelling(less | more) and _has_other_name(one, other)
    if less and more and not named and not all(word[0] == "#" or word in known for word in less | more):
        return ""
    return ("+" * bool(more or not less) + "-" * bool(less)) if len(less | more) <= _KINDS else ""


def _has_other_name(one: Form, other: Form) -> bool:
    """Whether the only difference is the name of what is called, or drawn."""
    drawn = read_table(TABLE)["operations"]["drawn"]
    for left, right in apart(one, other):
        if left[1:] != right[1:] and not (re.match(drawn, left[0]) and re.match(drawn, right[0])):
            return False
    return True


def _is_spelling(words: set[str]) -> bool:
    """Whether operations are known to be written in either way."""
    return any(words <= {*heads, *rest} for heads, rest in read_table(TABLE)["spellings"])


def _blank(form: Form) -> str:
    """A form without its names, as a text: `$` for a name."""
    return "$" if len(form) == 1 and form[0][0] == "$" else re.sub(r"'\$\w*'", "$", str(form))


def undecided(told: Sequence[Otherwise], things: Mapping[int, str], ways: str, names: AbstractSet[str]) -> list[bool]:
    """Which of the things `told` of a function of both programs may come to the same. `things`: statements of the port,
    by id, that stand for others, and what they have more (`+`) and less (`-`); `ways`: the same of whole statements;
    `names`: those of the function of the original."""
    every = {*ways, *"".join(things.values())}
    form = len({*ways}) > 1 or not all(things.values()) or bool(ways and len(every) > 1)
    return [form or _may_be_form(each, names) for each in told]


def _may_be_form(told: Otherwise, names: AbstractSet[str]) -> bool:
    """Whether a thing that stands alone comes to nothing by itself: a value got a name, or has it no more; no gradient
    for what has none."""
    if told.before and told.after:
        return False
    match told.at.node:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return told.after is None or name not in names
        case ast.With() as block:
            return _OF_DATA.search(ast.unparse(block)) is not None
    return False
