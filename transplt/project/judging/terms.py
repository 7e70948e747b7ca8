"""Terms that stand for what a function computes: one form for what is written in several ways, and where two differ."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from transplt.project.judging.forms import Form, sorted_form
from transplt.project.judging.statements import TABLE
from transplt.rules.tables import read_table

_NEGATIVE = {"NotEq": "Eq", "IsNot": "Is", "NotIn": "In"}
_OPPOSITES = {**_NEGATIVE, **{value: key for key, value in _NEGATIVE.items()}}
_TURNED = {"Lt": "LtE", "LtE": "Lt"}
_OTHERS = {"And": "Or", "Or": "And"}
#: So few parts may differ in what is one shape.
_FEW, _MANY = 3, 12
_TRUE, _FALSE = ("#True",), ("#False",)
RAISED: tuple[Form, ...] = (("raise",),)
NEXT: tuple[Form, ...] = (("continue",),)


def negated(form: Form) -> Form:
    """The opposite of a condition."""
    match form:
        case ("Not", inner):
            return (*inner,)
        case ("Lt" | "LtE" as name, one, other):
            return (_TURNED[name], other, one)
        case ("And" | "Or" as name, *parts):
            return sorted_form((_OTHERS[name], *map(negated, parts)))
        case (name, *parts) if name in _OPPOSITES:
            return (_OPPOSITES[name], *parts)
    return {_TRUE: _FALSE, _FALSE: _TRUE}.get(form, ("Not", form))


def upright_form(form: Form) -> tuple[Form, bool]:
    """A condition, or its opposite, whichever is written first, and whether it is the opposite."""
    other = negated(form)
    return (other, True) if form[0] in ("Not", "LtE", "Or", *_NEGATIVE) else (form, False)


def chosen(test: Form, one: Form, other: Form) -> Form:
    """One of two values."""
    test, turned = upright_form(test)
    if turned:
        one, other = other, one
    if one == other or ("raise",) in (one, other) or test in (_TRUE, _FALSE):
        return other if one == ("raise",) or test == _FALSE else one
    if one[0] == other[0] == "$List" and len(one) == len(other):
        return ("$List", *(chosen(test, left, right) for left, right in zip(one[1:], other[1:], strict=True)))
    if (one, other) in ((_TRUE, _FALSE), (_FALSE, _TRUE)):
        return test if one == _TRUE else negated(test)
    return ("If", test, one, other)


def joined(test: Form, one: tuple[Form, ...], other: tuple[Form, ...]) -> tuple[Form, ...]:
    """The effects of two branches."""
    test, turned = upright_form(test)
    if turned:
        one, other = other, one
    if RAISED in (one, other) or test in (_TRUE, _FALSE):
        return other if one == RAISED or test == _FALSE else one
    one, other = (each[:-1] if each[-1:] == NEXT else each for each in (one, other))
    same = 0
    while same < min(len(one), len(other)) and one[same] == other[same]:
        same += 1
    head, one, other = one[:same], one[same:], other[same:]
    if not one and not other:
        return head
    last: tuple[Form, ...] = ()
    if one and other and one[-1][0] == other[-1][0] == "return":
        last = (("return", chosen(test, one[-1][1], other[-1][1])),)
        one, other = one[:-1], other[:-1]
    return (*head, *([("if", test, one, other)] if one or other else []), *last)


def folded(over: Form, start: Form, phi: Form, value: Form) -> tuple[Form, Form | None]:
    """What a variable is after a loop, and what has to be told of the loop for it."""
    match value:
        case ("If", test, one, other) if phi in (one, other):
            kept = test if other == phi else negated(test)
            return folded(("where", over, kept), start, phi, one if other == phi else other)
        case ("append" | "extend" as kind, held, item) if held == phi:
            found = ("comp" if kind == "append" else "flat", over, item)
            return found if start == ("$List",) else ("extend", start, found), None
        case ("reversed", ("append", held, item)) if held == turned(phi) and start == ("$List",):
            return ("reversed", ("comp", over, item)), None
        case ("Add", one, other) if phi in (one, other) and start == ("#0.0",):
            return ("sum", ("comp", over, one if other == phi else other)), None
        case ("last" | "comp", *_):
            return ("fold", over, start, value), ("fold", start, value)
    return ("fold", over, start, value), ("fold", start, value)


def turned(form: Form) -> Form:
    return form[1] if form[0] == "reversed" else ("reversed", form)


def short(form: Form) -> Form:
    """A term, or a name for it where it is long."""
    text = repr(form)
    return form if len(text) < 4000 or form[0] in ("$Dict", "partial", "function") else (f"={hash(text)}",)


def slips(one: object, other: object) -> Iterator[tuple[Form, Form]]:
    """The smallest parts in which two effects or terms of one shape differ."""
    if one == other or not (isinstance(one, tuple) and isinstance(other, tuple)):
        return
    pairs = [*zip(one, other, strict=False)]
    if len(one) != len(other) or any(left != right and str in (type(left), type(right)) for left, right in pairs):
        yield one, other
    else:
        for left, right in pairs:
            yield from slips(left, right)


def slip(one: tuple[Form, ...], other: tuple[Form, ...]) -> tuple[str, Form, Form] | None:
    """What is another in the second of two functions, where all else in them is the same; None where that is open."""
    parts = [*dict.fromkeys(islice(slips(one, other), _MANY))]
    if not parts or len(parts) > _FEW:
        return None
    (left, right), sides = parts[0], [sorted(map(repr, side)) for side in zip(*parts, strict=True)]
    if sides[0] == sides[1]:
        return "what is done changed places", left, right
    if all(_is_value(before) and _is_value(after) for before, after in parts):
        return "another value", left, right
    if len(parts) > 1:
        return None
    heads = [each[0] if each and isinstance(each[0], str) else " " for each in (left, right)]
    if heads[0][1:] == heads[1][1:] and {heads[0][0], heads[1][0]} == {"$", "."}:
        return "this field of another object", left, right
    return _other_operation(left, right, heads)


def _other_operation(left: Form, right: Form, heads: list[str]) -> tuple[str, Form, Form] | None:
    known = [head in read_table(TABLE)["operations"]["counts"] for head in heads]
    if all(known) and sorted(map(repr, left[1:])) == sorted(map(repr, right[1:])):
        return "another operation", left, right
    if (known[0] and right in left) or (known[1] and left in right):
        return "an operation is gone" if right in left else "an operation is new", left, right
    return None


def _is_value(form: Form) -> bool:
    return bool(form) and isinstance(form[0], str) and (form[0].startswith(("#", "$arg ")) or form[0] == "ev")
