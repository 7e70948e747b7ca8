"""A call that becomes a call of another function: arguments stay where they are, get another name, value or company."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from transplt.codemods.call_edits import tight
from transplt.edits.work import Work
from transplt.trees.lazy import cst
from transplt.trees.transform import Transform

#: A call on one line is broken up where its line gets longer than this, and than the longest line of the file.
WIDE = 120


@dataclass(frozen=True, slots=True)
class Bound:
    """The arguments of a call by the parameter they go to, and their places among all arguments of the call."""

    values: dict[str, ast.expr]
    places: dict[str, int]

    def get(self, name: str) -> ast.expr | None:
        return self.values.get(name)


def bind(call: ast.Call, parameters: Sequence[str]) -> Bound | None:
    """Match arguments with parameters; None for stars and for arguments that the function does not have."""
    if any(isinstance(arg, ast.Starred) for arg in call.args) or any(key.arg is None for key in call.keywords):
        return None
    if len(call.args) > len(parameters):
        return None
    values = dict(zip(parameters, call.args, strict=False))
    for keyword in call.keywords:
        name = str(keyword.arg)
        if name in values or name not in parameters:
            return None
        values[name] = keyword.value
    order = sorted(values.values(), key=lambda node: (node.lineno, node.col_offset))
    return Bound(values, {name: order.index(node) for name, node in values.items()})


@dataclass(frozen=True, slots=True)
class Piece:
    """One argument of the new call.

    `place` is that of an argument of the old call, whose text stands for `{}` in `value`; a new one where it is None.
    """

    value: str = "{}"
    keyword: str = ""
    place: int | None = None
    star: Literal["", "*"] = ""


def rewritten(work: Work, call: ast.Call, callee: str, pieces: Sequence[Piece], tail: str = "") -> Transform:
    """Write a call of `callee` with `pieces` in place of a call, and `tail` behind it; the layout stays."""
    starts = work.source.line_starts
    line = work.source.slice(starts[call.lineno - 1], work.source.extent(call)[0])
    indent = line[: len(line) - len(line.lstrip())]
    widest = max(WIDE, max((len(text) for text in work.source.text.splitlines()), default=0))
    rest = work.source.utf8[work.source.extent(call)[1] :].split(b"\n", 1)[0].decode()

    def transform(root: cst.CSTNode) -> str:
        old = cst.ensure_type(root, cst.Call)
        empty = cst.Module([])
        args = _arguments(old, pieces)
        text = empty.code_for_node(old.with_changes(func=cst.parse_expression(callee), args=args)) + tail
        lines = f"{line}{text}{rest}".split("\n")
        if "#" not in text and max(map(len, lines)) > widest:
            nothing, default = cst.SimpleWhitespace(""), cst.MaybeSentinel.DEFAULT
            bare = [arg.with_changes(comma=default, whitespace_after_arg=nothing) for arg in args]
            inner = "".join(f"{indent}    {empty.code_for_node(each)},\n" for each in bare)
            text = f"{callee}(\n{inner}{indent}){tail}"
        return text

    return transform


def _arguments(old: cst.Call, pieces: Sequence[Piece]) -> list[cst.Arg]:
    """The new arguments, with the commas, line breaks and comments of the old ones."""
    empty = cst.Module([])
    last = old.args[-1]
    commas = [arg.comma for arg in old.args[:-1] if isinstance(arg.comma, cst.Comma)]
    breaks = [comma for comma in commas if isinstance(comma.whitespace_after, cst.ParenthesizedWhitespace)]
    between = (breaks or commas or [cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))])[-1]
    if isinstance(between.whitespace_after, cst.ParenthesizedWhitespace):
        between = between.with_changes(whitespace_after=_without_comment(between.whitespace_after))
    args: list[cst.Arg] = []
    for piece in pieces:
        kept = None if piece.place is None else old.args[piece.place]
        text = piece.value if kept is None else piece.value.replace("{}", empty.code_for_node(kept.value))
        keyword = cst.Name(piece.keyword) if piece.keyword else None
        value = kept.value if kept is not None and piece.value == "{}" else _parsed(text)
        equal = tight() if keyword else cst.MaybeSentinel.DEFAULT
        if kept is not None and keyword and kept.keyword:
            equal = kept.equal
        comma = between
        if kept is last:
            comma = _inner_comma(last, between)
        elif kept is not None and isinstance(kept.comma, cst.Comma):
            comma = kept.comma
        args.append(cst.Arg(value, keyword=keyword, equal=equal, star=piece.star, comma=comma))
    closing = last.comma
    if isinstance(closing, cst.Comma) and isinstance(closing.whitespace_after, cst.ParenthesizedWhitespace):
        used = any(piece.place == len(old.args) - 1 for piece in pieces[:-1])
        closing = closing.with_changes(
            whitespace_after=_without_comment(closing.whitespace_after) if used else closing.whitespace_after
        )
    args[-1] = args[-1].with_changes(comma=closing, whitespace_after_arg=last.whitespace_after_arg)
    return args


def _parsed(text: str) -> cst.BaseExpression:
    """An expression that may go over several lines, as it may among arguments."""
    node = cst.parse_expression(f"({text})")
    return node.with_changes(lpar=node.lpar[1:], rpar=node.rpar[:-1])


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
