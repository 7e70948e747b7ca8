"""What becomes a call of another function: arguments move, and get another name, value or company."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from transplt.edits.trees.arguments import comma, comment_of, in_place_of, method_of, on_next_line, space_after, tight
from transplt.edits.trees.lazy import cst
from transplt.edits.trees.transform import code, edit_of, expression


@dataclass(frozen=True, slots=True)
class Piece:
    """One argument of the new call.

    `place` is that of an argument of the old call, whose text stands for `{}` in `value`; a new one where it is None.
    """

    value: str = "{}"
    keyword: str = ""
    place: int | None = None
    star: Literal["", "*"] = ""


@edit_of("Call")
def rebuilt(
    old: cst.Call, callee: str, pieces: Sequence[Piece], tail: str, *, indent: str, fits: Callable[[str], bool]
) -> str:
    """A call of `callee` with `pieces`, and `tail` behind it, in the place of a call.

    Commas, line breaks and comments are the old ones'; without comments each argument gets a line of its own, below
    `indent`, where the text does not fit.
    """
    new = old.with_changes(func=expression(callee), args=_pieces(old, pieces))
    text = code(new) + tail
    if "#" in text or fits(text):
        return text
    nothing, default = cst.SimpleWhitespace(""), cst.MaybeSentinel.DEFAULT
    bare = [arg.with_changes(comma=default, whitespace_after_arg=nothing) for arg in new.args]
    inner = "".join(f"{indent}    {code(each)},\n" for each in bare)
    return f"{code(new.func)}(\n{inner}{indent}){tail}"


@edit_of("Call")
def partial_of(call: cst.Call, partial: str) -> cst.Call:
    """`functools.partial` of what is called, with all arguments but the first."""
    return in_place_of(call, 0, call.args[0].with_changes(value=call.func)).with_changes(func=expression(partial))


@edit_of("Call")
def called_through(call: cst.Call, function: str) -> cst.Call:
    """`function(a.b, ...)` in place of `a.b(...)`, in the layout of the call."""
    first = cst.Arg(call.func)
    if call.args:
        before = call.whitespace_before_args
        lines = isinstance(before, cst.ParenthesizedWhitespace)
        first = first.with_changes(comma=cst.Comma(whitespace_after=before) if lines else comma())
    return call.with_changes(func=expression(function), args=[first, *call.args])


@edit_of("Call")
def calling_with(call: cst.Call, name: str, function: str, *, method: bool) -> cst.Call:
    """`name(function, ...)` in place of `function(...)`; of a method the object is the argument behind the function."""
    first = [cst.Arg(expression(function)), *([cst.Arg(method_of(call).value)] if method else [])]
    given = [each.with_changes(comma=comma()) if call.args or each is not first[-1] else each for each in first]
    return call.with_changes(func=expression(name), args=[*given, *call.args])


@edit_of("BinaryOperation")
def operands_given_to(operation: cst.BinaryOperation, name: str, function: str) -> str:
    """`name(function, a, b)` in place of `a @ b` or another operation of two."""
    return f"{name}({function}, {code(operation.left)}, {code(operation.right)})"


@edit_of("Comparison")
def as_instance(found: cst.Comparison, *, negated: bool) -> str:
    """`isinstance(x, C)` in place of `type(x) is C` and `type(x) in (C, D)`, with `not` before it where asked."""
    what = code(cst.ensure_type(found.left, cst.Call).args[0].value)
    kind = found.comparisons[0].comparator
    text = code(kind)
    if isinstance(kind, (cst.List, cst.Set)):
        every = [code(each.value) for each in kind.elements]
        text = f"({', '.join(every)}{',' * (len(every) == 1)})"
    return f"{'not ' * negated}isinstance({what}, {text})"


@edit_of("Subscript")
def indexed_by_parts(found: cst.Subscript, torch: str) -> str:
    """`torch.view_as_complex(torch.view_as_real(x)[i])` in place of `x[i]`; behind an ellipsis the parts are named."""
    found = found.with_changes(lpar=(), rpar=())
    real = found.with_changes(value=expression(f"{torch}.view_as_real({code(found.value)})"))
    places = [each.slice for each in found.slice]
    if any(isinstance(each, cst.Index) and isinstance(each.value, cst.Ellipsis) for each in places):
        last = cst.SubscriptElement(cst.Slice(None, None))
        spaced = [each.with_changes(comma=comma()) for each in found.slice]
        real = real.with_changes(slice=[*spaced, last])
    return f"{torch}.view_as_complex({code(real)})"


def _pieces(old: cst.Call, pieces: Sequence[Piece]) -> list[cst.Arg]:
    last = old.args[-1]
    commas = [arg.comma for arg in old.args[:-1] if isinstance(arg.comma, cst.Comma)]
    breaks = [comma for comma in commas if isinstance(comma.whitespace_after, cst.ParenthesizedWhitespace)]
    between = (breaks or commas or [comma()])[-1]
    if isinstance(between.whitespace_after, cst.ParenthesizedWhitespace):
        between = between.with_changes(whitespace_after=on_next_line(between.whitespace_after))
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
    match closing:
        case cst.Comma(whitespace_after=cst.ParenthesizedWhitespace() as space):
            if any(piece.place == len(old.args) - 1 for piece in pieces[:-1]):  # its comment stands there
                closing = closing.with_changes(whitespace_after=on_next_line(space))
    args[-1] = args[-1].with_changes(comma=closing, whitespace_after_arg=last.whitespace_after_arg)
    return args


def _inner_comma(last: cst.Arg, between: cst.Comma) -> cst.Comma:
    """The comma of what was the last argument and is no longer: its comment, and the line break of the others."""
    own, after = space_after(last), between.whitespace_after
    if not isinstance(last.comma, cst.Comma) or comment_of(own) is None:
        return between
    if isinstance(own, cst.ParenthesizedWhitespace) and isinstance(after, cst.ParenthesizedWhitespace):
        own = after.with_changes(first_line=own.first_line)
    return between.with_changes(whitespace_after=own)
