"""What goes: arguments of a call and names of an import. By trees, which say whose a comma and a comment is."""

from __future__ import annotations

from transplt.trees.lazy import cst
from transplt.trees.transform import CannotRewrite, Transform


def argument_replaced(index: int, keyword: str, value: str) -> Transform:
    """Put a value in the place of the argument at a place, or of that name; without a value the argument goes."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        call = cst.ensure_type(node, cst.Call)
        at = _place(call, index, keyword)
        if not value:
            return _without(call, at)
        new = call.args[at].with_changes(value=cst.parse_expression(value))
        return call.with_changes(args=[*call.args[:at], new, *call.args[at + 1 :]])

    return transform


def without_arguments(*names: str, first: bool = False) -> Transform:
    """Leave keyword arguments out, and with `first` the first positional one."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        call = cst.ensure_type(node, cst.Call)
        if first:
            call = _without(call, 0)
        for name in names:
            at = next((i for i, arg in enumerate(call.args) if arg.keyword and arg.keyword.value == name), None)
            if at is None:
                raise CannotRewrite(f"the call has no argument {name}")
            call = _without(call, at)
        return call

    return transform


def without_first(node: cst.CSTNode) -> cst.CSTNode:
    """A call without its first argument, whose layout goes with it."""
    call = cst.ensure_type(node, cst.Call)
    return call.with_changes(args=call.args[1:])


def without_last(node: cst.CSTNode) -> cst.CSTNode:
    """A call without its last argument, and without a comma behind the one that is last then."""
    call = cst.ensure_type(node, cst.Call)
    last = call.args[-2].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return call.with_changes(args=[*call.args[:-2], last])


def without_names(*names: str) -> Transform:
    """Take names out of an import statement, by what they are called in the file; one at least has to stay."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        line, found = _import(node)
        if isinstance(found.names, cst.ImportStar):
            raise CannotRewrite("not the import statement that was expected")
        kept = list(found.names)
        for name in names:
            at = next((index for index, alias in enumerate(kept) if _local_name(alias) == name), None)
            if at is None or len(kept) == 1:
                raise CannotRewrite(f"the import has no {name}")
            del kept[at]
        kept[-1] = kept[-1].with_changes(comma=found.names[-1].comma)
        return line.with_changes(body=[found.with_changes(names=kept)])

    return transform


def _without(call: cst.Call, index: int) -> cst.Call:
    """The call without one argument. Comments stay: that behind it goes behind what stands before it now."""
    args = list(call.args)
    gone = args.pop(index)
    behind = _space_after(gone)
    if not args:
        space = _merged(call.whitespace_before_args, behind)
        return call.with_changes(args=[], whitespace_before_args=space)
    if index == 0:
        before = call.whitespace_before_args
        return call.with_changes(args=args, whitespace_before_args=_with_comment_of(before, behind))
    last = args[index - 1]
    if index < len(args):
        space = _with_comment_of(_space_after(last), behind)
    else:
        space = _merged(_space_after(last), behind)
        last = last.with_changes(comma=gone.comma, whitespace_after_arg=cst.SimpleWhitespace(""))
    if isinstance(last.comma, cst.Comma):
        args[index - 1] = last.with_changes(comma=last.comma.with_changes(whitespace_after=space))
    else:
        args[index - 1] = last.with_changes(whitespace_after_arg=space)
    return call.with_changes(args=args)


def _space_after(arg: cst.Arg) -> cst.BaseParenthesizableWhitespace:
    return arg.comma.whitespace_after if isinstance(arg.comma, cst.Comma) else arg.whitespace_after_arg


def _comment(space: cst.BaseParenthesizableWhitespace) -> cst.Comment | None:
    return space.first_line.comment if isinstance(space, cst.ParenthesizedWhitespace) else None


def _with_comment_of(
    place: cst.BaseParenthesizableWhitespace, gone: cst.BaseParenthesizableWhitespace
) -> cst.BaseParenthesizableWhitespace:
    """`place` with the comment of `gone` in it: on the same line, or on one of its own when that is taken."""
    if _comment(gone) is None or not isinstance(gone, cst.ParenthesizedWhitespace):
        return place
    if not isinstance(place, cst.ParenthesizedWhitespace):
        return gone
    if place.first_line.comment is None:
        return place.with_changes(first_line=gone.first_line)
    line = cst.EmptyLine(indent=True, whitespace=place.last_line, comment=_comment(gone))
    return place.with_changes(empty_lines=[*place.empty_lines, line])


def _merged(
    before: cst.BaseParenthesizableWhitespace, behind: cst.BaseParenthesizableWhitespace
) -> cst.BaseParenthesizableWhitespace:
    """What stands between the last argument (or the bracket) and the closing bracket; no comment of either is lost."""
    if _comment(before) is None or not isinstance(before, cst.ParenthesizedWhitespace):
        return behind
    if not isinstance(behind, cst.ParenthesizedWhitespace):
        return before.with_changes(last_line=cst.SimpleWhitespace(""))
    lines = list(behind.empty_lines)
    if _comment(behind) is not None:
        lines.insert(0, cst.EmptyLine(indent=True, whitespace=before.last_line, comment=_comment(behind)))
    return behind.with_changes(first_line=before.first_line, empty_lines=lines)


def _place(call: cst.Call, index: int, keyword: str) -> int:
    for at, arg in enumerate(call.args):
        if arg.star:
            break
        if arg.keyword is None and at == index:
            return at
    for at, arg in enumerate(call.args):
        if arg.keyword is not None and arg.keyword.value == keyword:
            return at
    raise CannotRewrite("the argument is not where the rule expects it")


def _local_name(alias: cst.ImportAlias) -> str:
    """`a` of `a`, of `b as a`, and of `a.b`, which binds a."""
    return alias.evaluated_alias or alias.evaluated_name.partition(".")[0]


def _import(node: cst.CSTNode) -> tuple[cst.SimpleStatementLine, cst.Import | cst.ImportFrom]:
    line = cst.ensure_type(node, cst.SimpleStatementLine)
    if len(line.body) != 1 or not isinstance(line.body[0], (cst.Import, cst.ImportFrom)):
        raise CannotRewrite("not the import statement that was expected")
    return line, line.body[0]
