"""What edits of calls share: arguments, their names, and the commas, line breaks and comments between them."""

from __future__ import annotations

import unicodedata
from itertools import pairwise

from transplt.edits.trees.lazy import cst
from transplt.edits.trees.transform import CannotRewrite


def tight() -> cst.AssignEqual:
    """`=` without spaces around it."""
    return cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))


def comma() -> cst.Comma:
    """A comma with a space behind it."""
    return cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))


def keyword_of(arg: cst.Arg) -> str | None:
    """The name of a keyword argument as Python reads it, of `\ufb01` that is `fi`; None for any other argument."""
    return None if arg.keyword is None else unicodedata.normalize("NFKC", arg.keyword.value)


def stands_at(call: cst.Call, index: int) -> bool:
    """True where the argument at a place is the one that the function gets there by its position."""
    given = call.args[: index + 1]
    return len(given) > index >= 0 and given[index].keyword is None and not any(arg.star for arg in given)


def place_of(call: cst.Call, name: str, why: str = "") -> int:
    """The place of a keyword argument among all: CannotRewrite, with the reason where one is given."""
    for at, arg in enumerate(call.args):
        if keyword_of(arg) == name:
            return at
    raise CannotRewrite(why or f"the call has no argument {name}")


def first_of(call: cst.CSTNode) -> cst.BaseExpression:
    """The first argument of a call: CannotRewrite."""
    if not isinstance(call, cst.Call):
        raise CannotRewrite("not the call that was expected")
    if not call.args:
        raise CannotRewrite("the call has no argument")
    return call.args[0].value


def method_of(call: cst.Call) -> cst.Attribute:
    """`x.method` of `x.method(...)`: CannotRewrite; where it is longer than an operand may be, it is a hole."""
    if not isinstance(call.func, cst.Attribute):
        raise CannotRewrite("the object of the method is unknown")
    return call.func


def in_place_of(call: cst.Call, at: int, *new: cst.Arg) -> cst.Call:
    """A call with other arguments where one stands."""
    return call.with_changes(args=[*call.args[:at], *new, *call.args[at + 1 :]])


def before_another(arg: cst.Arg, comma: cst.Comma | cst.MaybeSentinel) -> cst.Arg:
    """An argument with the comma that goes behind it."""
    return arg.with_changes(comma=comma, whitespace_after_arg=cst.SimpleWhitespace(""))


def space_after(arg: cst.Arg) -> cst.BaseParenthesizableWhitespace:
    """What stands behind an argument and its comma."""
    return arg.comma.whitespace_after if isinstance(arg.comma, cst.Comma) else arg.whitespace_after_arg


def comment_of(space: cst.BaseParenthesizableWhitespace) -> cst.Comment | None:
    """The comment in the line in which a layout begins."""
    return space.first_line.comment if isinstance(space, cst.ParenthesizedWhitespace) else None


def without_comments(space: cst.BaseParenthesizableWhitespace) -> cst.BaseParenthesizableWhitespace:
    """The same layout with its comments left out; of several in a row the lines go too."""
    if not isinstance(space, cst.ParenthesizedWhitespace):
        return space
    lines: list[cst.TrailingWhitespace | cst.EmptyLine] = [space.first_line, *space.empty_lines]
    kept = [_bare(line) for above, line in pairwise(lines) if not (above.comment and line.comment)]
    return space.with_changes(first_line=_bare(space.first_line), empty_lines=kept)


def on_next_line(space: cst.ParenthesizedWhitespace) -> cst.ParenthesizedWhitespace:
    """One line break and the indentation of a layout, and nothing else of it."""
    line = space.first_line.with_changes(whitespace=cst.SimpleWhitespace(""), comment=None)
    return space.with_changes(first_line=line, empty_lines=[])


def _bare(line: cst.TrailingWhitespace | cst.EmptyLine) -> cst.TrailingWhitespace | cst.EmptyLine:
    return line.with_changes(whitespace=cst.SimpleWhitespace(""), comment=None) if line.comment else line
