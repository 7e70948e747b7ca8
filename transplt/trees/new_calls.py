"""What becomes a call of another function. By trees: arguments move, and get another name, value or company."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from transplt.trees.lazy import cst
from transplt.trees.transform import CannotRewrite, Transform, code, expression


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


def partial_of(partial: str) -> Transform:
    """`functools.partial` of what is called, with all arguments but the first."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        call = cst.ensure_type(node, cst.Call)
        function = call.args[0].with_changes(value=call.func)
        return call.with_changes(func=cst.parse_expression(partial), args=[function, *call.args[1:]])

    return transform


def called_through(function: str) -> Transform:
    """`function(a.b, ...)` in place of `a.b(...)`, in the layout of the call."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        call = cst.ensure_type(node, cst.Call)
        first = cst.Arg(call.func)
        if call.args:
            before = call.whitespace_before_args
            lines = isinstance(before, cst.ParenthesizedWhitespace)
            first = first.with_changes(comma=cst.Comma(whitespace_after=before) if lines else comma())
        return call.with_changes(func=cst.parse_expression(function), args=[first, *call.args])

    return transform


def calling_with(name: str, function: str, *, method: bool) -> Transform:
    """`name(function, ...)` in place of `function(...)`; of a method the object is the argument behind the function."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        call = cst.ensure_type(node, cst.Call)
        first = [cst.Arg(cst.parse_expression(function))]
        if method:
            if not isinstance(call.func, cst.Attribute):
                raise CannotRewrite("the object of the method is not seen")
            first.append(cst.Arg(call.func.value))
        given = [each.with_changes(comma=comma()) if call.args or each is not first[-1] else each for each in first]
        return call.with_changes(func=cst.parse_expression(name), args=[*given, *call.args])

    return transform


def operands_given_to(name: str, function: str) -> Transform:
    """`name(function, a, b)` in place of `a @ b` or another operation of two."""

    def transform(node: cst.CSTNode) -> str:
        operation = cst.ensure_type(node, cst.BinaryOperation)
        return f"{name}({function}, {code(operation.left)}, {code(operation.right)})"

    return transform


def as_instance(*, negated: bool) -> Transform:
    """`isinstance(x, C)` in place of `type(x) is C` and `type(x) in (C, D)`, with `not` before it where asked."""

    def transform(node: cst.CSTNode) -> str:
        found = cst.ensure_type(node, cst.Comparison)
        what = code(cst.ensure_type(found.left, cst.Call).args[0].value)
        kind = found.comparisons[0].comparator
        text = code(kind)
        if isinstance(kind, (cst.List, cst.Set)):
            every = [code(each.value) for each in kind.elements]
            text = f"({', '.join(every)}{',' * (len(every) == 1)})"
        return f"{'not ' * negated}isinstance({what}, {text})"

    return transform


def indexed_by_parts(torch: str) -> Transform:
    """`torch.view_as_complex(torch.view_as_real(x)[i])` in place of `x[i]`; behind an ellipsis the parts are named."""

    def transform(node: cst.CSTNode) -> str:
        found = cst.ensure_type(node, cst.Subscript).with_changes(lpar=(), rpar=())
        real = found.with_changes(value=cst.parse_expression(f"{torch}.view_as_real({code(found.value)})"))
        places = [each.slice for each in found.slice]
        if any(isinstance(each, cst.Index) and isinstance(each.value, cst.Ellipsis) for each in places):
            last = cst.SubscriptElement(cst.Slice(None, None))
            spaced = [each.with_changes(comma=comma()) for each in found.slice]
            real = real.with_changes(slice=[*spaced, last])
        return f"{torch}.view_as_complex({code(real)})"

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


def tight() -> cst.AssignEqual:
    """`=` without spaces around it."""
    return cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))


def comma() -> cst.Comma:
    return cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
