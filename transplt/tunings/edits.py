"""Edits that go on top of those of the migration: of expressions that it may have changed, a keyword more in a call."""

from __future__ import annotations

import ast

from transplt.codemods.call_edits import with_keyword
from transplt.finding import Level
from transplt.lazy_libcst import cst
from transplt.rewrite import Change, Transform
from transplt.writing import Writer

#: Calls on one line that would become longer than this go on below their first argument.
_LONGEST_LINE = 119


def edit(writer: Writer, node: ast.expr, code: str, message: str, transform: Transform, *, api: str = "") -> bool:
    """An edit of an expression that others may have edited too; nothing, and False, where its statement goes."""
    start = writer.work.source.extent(node)[0]
    if any(gone.start <= start < gone.end for gone in writer.work.deletions):
        return False
    writer.work.changes.append(Change(node, code, message, transform, Level.UNSAFE, api, asked=True))
    return True


def add_keyword(
    writer: Writer, call: ast.Call, code: str, message: str, name: str, value: str, *, api: str = ""
) -> bool:
    """A keyword argument more, unless something gave the call one of that name before."""
    end = getattr(call, "_written_to", call.end_col_offset or 0)
    width = len(name) + len(value) + 3
    column = 0
    if call.lineno == call.end_lineno and call.args + call.keywords and end + width > _LONGEST_LINE:
        column = (call.func.end_col_offset or 0) + 1
        end = column
    call._written_to = end + width  # type: ignore[attr-defined]
    return edit(writer, call, code, message, _with_new_keyword(name, value, column), api=api)


def _with_new_keyword(name: str, value: str, column: int) -> Transform:
    add = with_keyword(name, value)

    def transform(node: cst.CSTNode) -> cst.CSTNode | str:
        if not isinstance(node, cst.Call) or any(arg.keyword and arg.keyword.value == name for arg in node.args):
            return node
        call = cst.ensure_type(add(node), cst.Call)
        at = next(index for index, arg in enumerate(call.args) if arg.keyword and arg.keyword.value == name)
        if not column or not at:
            return call
        below = cst.ParenthesizedWhitespace(last_line=cst.SimpleWhitespace(" " * column))
        before = call.args[at - 1].with_changes(comma=cst.Comma(whitespace_after=below))
        args = [*call.args[: at - 1], before, *call.args[at:]]
        if at > 1 and isinstance(args[at].comma, cst.Comma) and at + 1 == len(args):
            args[at] = args[at].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        return call.with_changes(args=args)

    return transform
