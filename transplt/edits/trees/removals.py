"""What goes: arguments of a call and names of an import, with their commas and comments."""

from __future__ import annotations

from transplt.edits.trees.arguments import (
    before_another,
    comment_of,
    in_place_of,
    keyword_of,
    place_of,
    space_after,
    stands_at,
)
from transplt.edits.trees.lazy import cst
from transplt.edits.trees.names import import_in
from transplt.edits.trees.transform import CannotRewrite, edit_of, expression


@edit_of("Call")
def argument_replaced(call: cst.Call, index: int, keyword: str, value: str) -> cst.Call:
    """Put a value in the place of the argument at a place, or of that name; without a value the argument goes."""
    misses = "the argument is not at the position that the rule expects"
    at = index if stands_at(call, index) else place_of(call, keyword, misses)
    return in_place_of(call, at, call.args[at].with_changes(value=expression(value))) if value else _without(call, at)


@edit_of("Call")
def without_arguments(call: cst.Call, *names: str, first: bool = False) -> cst.Call:
    """Leave keyword arguments out, and with `first` the first positional one."""
    if first:
        call = _without(call, 0)
    for name in names:
        call = _without(call, place_of(call, name))
    return call


@edit_of("Call")
def without_first(call: cst.Call) -> cst.Call:
    """A call without its first argument, whose layout goes with it."""
    return call.with_changes(args=call.args[1:])


@edit_of("Call")
def without_last(call: cst.Call) -> cst.Call:
    """A call without its last argument, and without a comma behind the one that is last then."""
    last = call.args[-2].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return call.with_changes(args=[*call.args[:-2], last])


@edit_of("Call")
def without_keyword(call: cst.Call, name: str) -> cst.Call:
    """Leave a keyword argument out; the last one has the comma, or none, that the last one had, and its own comment."""
    kept = [arg for arg in call.args if keyword_of(arg) != name]
    if kept and kept[-1] is not call.args[-1]:
        kept[-1] = _as_last(kept[-1], call.args[-1])
    return call.with_changes(args=kept)


@edit_of("Call")
def without_any_argument(call: cst.Call) -> cst.Call:
    """A call without its arguments."""
    return call.with_changes(args=[], whitespace_before_args=cst.SimpleWhitespace(""))


@edit_of("SimpleStatementLine")
def without_names(line: cst.SimpleStatementLine, *names: str) -> cst.SimpleStatementLine:
    """Take names out of an import statement, by what they are called in the file; one at least has to stay."""
    found, kept = import_in(line)
    end = kept[-1].comma
    for name in names:
        # `a.b` binds a.
        called = [alias.evaluated_alias or alias.evaluated_name.partition(".")[0] for alias in kept]
        if name not in called or len(kept) == 1:
            raise CannotRewrite(f"the import has no {name}")
        del kept[called.index(name)]
    kept[-1] = kept[-1].with_changes(comma=end)
    return line.with_changes(body=[found.with_changes(names=kept)])


def _as_last(arg: cst.Arg, last: cst.Arg) -> cst.Arg:
    """An argument with the layout of the last one; a comment behind it stays."""
    own, end = space_after(arg), space_after(last)
    if not isinstance(own, cst.ParenthesizedWhitespace) or own.first_line.comment is None:
        return arg.with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
    if isinstance(last.comma, cst.Comma) and isinstance(end, cst.ParenthesizedWhitespace):
        own = end.with_changes(first_line=own.first_line)
    return arg.with_changes(comma=cst.ensure_type(arg.comma, cst.Comma).with_changes(whitespace_after=own))


def _without(call: cst.Call, index: int) -> cst.Call:
    """The call without one argument. Comments stay: that behind it goes behind what stands before it now."""
    args = list(call.args)
    gone = args.pop(index)
    behind = space_after(gone)
    if not args:
        space = _merged(call.whitespace_before_args, behind)
        return call.with_changes(args=[], whitespace_before_args=space)
    if index == 0:
        before = call.whitespace_before_args
        return call.with_changes(args=args, whitespace_before_args=_with_comment_of(before, behind))
    last = args[index - 1]
    if index < len(args):
        space = _with_comment_of(space_after(last), behind)
    else:
        space = _merged(space_after(last), behind)
        last = before_another(last, gone.comma)
    if isinstance(last.comma, cst.Comma):
        args[index - 1] = last.with_changes(comma=last.comma.with_changes(whitespace_after=space))
    else:
        args[index - 1] = last.with_changes(whitespace_after_arg=space)
    return call.with_changes(args=args)


def _with_comment_of(
    place: cst.BaseParenthesizableWhitespace, gone: cst.BaseParenthesizableWhitespace
) -> cst.BaseParenthesizableWhitespace:
    """`place` with the comment of `gone` in it: on the same line, or on one of its own when that is taken."""
    if comment_of(gone) is None or not isinstance(gone, cst.ParenthesizedWhitespace):
        return place
    if not isinstance(place, cst.ParenthesizedWhitespace):
        return gone
    if place.first_line.comment is None:
        return place.with_changes(first_line=gone.first_line)
    line = cst.EmptyLine(indent=True, whitespace=place.last_line, comment=comment_of(gone))
    return place.with_changes(empty_lines=[*place.empty_lines, line])


def _merged(
    before: cst.BaseParenthesizableWhitespace, behind: cst.BaseParenthesizableWhitespace
) -> cst.BaseParenthesizableWhitespace:
    """What stands between the last argument (or the bracket) and the closing bracket; no comment of either is lost."""
    if comment_of(before) is None or not isinstance(before, cst.ParenthesizedWhitespace):
        return behind
    if not isinstance(behind, cst.ParenthesizedWhitespace):
        return before.with_changes(last_line=cst.SimpleWhitespace(""))
    lines = list(behind.empty_lines)
    if comment_of(behind) is not None:
        lines.insert(0, cst.EmptyLine(indent=True, whitespace=before.last_line, comment=comment_of(behind)))
    return behind.with_changes(first_line=before.first_line, empty_lines=lines)
