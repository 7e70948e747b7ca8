"""Calls that become calls of another function: arguments stay where they are, get another name, value or company."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from transplt.trees.calls import comma, tight
from transplt.trees.lazy import cst
from transplt.trees.transform import Transform, code, expression


@dataclass(frozen=True, slots=True)
class Piece:
    """One argument of the new call.

    `place` is that of an argument of the old call, whose text stands for `{}` in `value`; a new one where it is None.
    """

    value: str = "{}"
    keyword: str = ""
    place: int | None = None
    star: Literal["", "*"] = ""


def rebuilt(callee: str, pieces: Sequence[Piece], tail: str, *, indent: str, fits: Callable[[str], bool]) -> Transform:
    """A call of `callee` with `pieces`, and `tail` behind it, in the place of a call.

    Commas, line breaks and comments are the old ones'; without comments each argument gets a line of its own, below
    `indent`, where the text does not fit.
    """

    def transform(node: cst.CSTNode) -> str:
        old = cst.ensure_type(node, cst.Call)
        new = old.with_changes(func=cst.parse_expression(callee), args=_pieces(old, pieces))
        text = code(new) + tail
        return text if "#" in text or fits(text) else _broken_up(new, indent) + tail

    return transform


def _broken_up(call: cst.Call, indent: str) -> str:
    nothing, default = cst.SimpleWhitespace(""), cst.MaybeSentinel.DEFAULT
    bare = [arg.with_changes(comma=default, whitespace_after_arg=nothing) for arg in call.args]
    inner = "".join(f"{indent}    {code(each)},\n" for each in bare)
    return f"{code(call.func)}(\n{inner}{indent})"


def _pieces(old: cst.Call, pieces: Sequence[Piece]) -> list[cst.Arg]:
    last = old.args[-1]
    commas = [arg.comma for arg in old.args[:-1] if isinstance(arg.comma, cst.Comma)]
    breaks = [comma for comma in commas if isinstance(comma.whitespace_after, cst.ParenthesizedWhitespace)]
    between = (breaks or commas or [comma()])[-1]
    if isinstance(between.whitespace_after, cst.ParenthesizedWhitespace):
        between = between.with_changes(whitespace_after=_without_comment(between.whitespace_after))
    args: list[cst.Arg] = []
    for piece in pieces:
        kept = None if piece.place is None else old.args[piece.place]
        text = piece.value if kept is None else piece.value.replace("{}", code(kept.value))
        keyword = cst.Name(piece.keyword) if piece.keyword else None
        value = kept.value if kept is not None and piece.value == "{}" else expression(text)
        equal = tight() if keyword else cst.MaybeSentinel.DEFAULT
        if kept is not None and keyword and kept.keyword:
            equal = kept.equal
        behind = between
        if kept is last:
            behind = _inner_comma(last, between)
        elif kept is not None and isinstance(kept.comma, cst.Comma):
            behind = kept.comma
        args.append(cst.Arg(value, keyword=keyword, equal=equal, star=piece.star, comma=behind))
    closing = last.comma
    if isinstance(closing, cst.Comma) and isinstance(closing.whitespace_after, cst.ParenthesizedWhitespace):
        used = any(piece.place == len(old.args) - 1 for piece in pieces[:-1])
        closing = closing.with_changes(
            whitespace_after=_without_comment(closing.whitespace_after) if used else closing.whitespace_after
        )
    args[-1] = args[-1].with_changes(comma=closing, whitespace_after_arg=last.whitespace_after_arg)
    return args


def _inner_comma(last: cst.Arg, between: cst.Comma) -> cst.Comma:
    """The comma of what was the last argument and is no longer: its comment, and the line break of the others."""
    space = last.comma.whitespace_after if isinstance(last.comma, cst.Comma) else None
    after = between.whitespace_after
    if not isinstance(space, cst.ParenthesizedWhitespace) or space.first_line.comment is None:
        return between
    if not isinstance(after, cst.ParenthesizedWhitespace):
        return between.with_changes(whitespace_after=space)
    return between.with_changes(whitespace_after=after.with_changes(first_line=space.first_line))


def _without_comment(space: cst.ParenthesizedWhitespace) -> cst.ParenthesizedWhitespace:
    plain = space.first_line.with_changes(whitespace=cst.SimpleWhitespace(""), comment=None)
    return space.with_changes(first_line=plain, empty_lines=[])
