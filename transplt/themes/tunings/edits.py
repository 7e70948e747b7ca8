"""Edits that go on top of those of the migration: of expressions that it may have changed, a keyword more in a call."""

from __future__ import annotations

import ast

from transplt.codemods.call_edits import with_keyword
from transplt.edits.ignores import Ignores
from transplt.edits.rewrite import Change
from transplt.edits.writing import Writer
from transplt.finding import Level
from transplt.trees.lazy import cst
from transplt.trees.transform import Transform

#: Calls on one line that would become longer than this go on below their first argument.
_LONGEST_LINE = 119
#: What an edit of the migration may add to a call: `, sampler=DistributedSampler(dataset)`.
_OTHER_EDIT = 30


def edit(writer: Writer, node: ast.expr, code: str, message: str, transform: Transform, *, api: str = "") -> bool:
    """An edit of an expression that others may have edited too; nothing, and False, where its statement goes."""
    start = writer.work.source.extent(node)[0]
    if any(gone.start <= start < gone.end for gone in writer.work.deletions):
        return False
    writer.work.changes.append(Change(node, code, message, transform, Level.UNSAFE, api, asked=True))
    return True


def ignored(writer: Writer, node: ast.expr, code: str) -> bool:
    """True where a comment switches a code off for an expression: what was said without the tuning is still true."""
    return bool(Ignores(writer.work).reason(code, node.lineno, node.end_lineno or node.lineno))


def add_keyword(
    writer: Writer, call: ast.Call, code: str, message: str, name: str, value: str, *, api: str = ""
) -> bool:
    """A keyword argument more, unless something gave the call one of that name before."""
    others = sum(change.node is call and change.level is not Level.UNSAFE for change in writer.work.changes)
    column = _below(call, len(name) + len(value) + 3, others * _OTHER_EDIT)
    return edit(writer, call, code, message, _with_new_keyword(name, value, column), api=api)


def _below(call: ast.Call, width: int, before: int) -> int | None:
    """The column at which an argument of a width goes on a line of its own, None where it stays on the last line.

    `before` is by how much other edits of the call may make it longer.
    """
    given = sorted([*call.args, *(keyword.value for keyword in call.keywords)], key=_place)
    if not given or not call.end_lineno:
        return None
    last = given[-1]
    starts = {_first_line(call, each) for each in given}
    many = len(starts) > 1 or last.lineno > call.lineno
    line = _first_line(call, last)
    on_line = [each for each in given if _first_line(call, each) == line]
    if many and len(on_line) == 1:
        return _column(call, last)  # each argument has a line of its own, or the last one has
    end = getattr(call, "_written_to", (last.end_col_offset or 0) + before)
    if end + width + 1 <= _LONGEST_LINE:
        call._written_to = end + width  # type: ignore[attr-defined]
        return None
    column = _column(call, on_line[0]) if many else (call.func.end_col_offset or 0) + 1
    call._written_to = column + width  # type: ignore[attr-defined]
    return column


def _place(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _first_line(call: ast.Call, node: ast.expr) -> int:
    return next((each.lineno for each in call.keywords if each.value is node), node.lineno)


def _column(call: ast.Call, node: ast.expr) -> int:
    return next((each.col_offset for each in call.keywords if each.value is node), node.col_offset)


def _with_new_keyword(name: str, value: str, column: int | None) -> Transform:
    add = with_keyword(name, value)

    def transform(node: cst.CSTNode) -> cst.CSTNode | str:
        if not isinstance(node, cst.Call) or any(arg.keyword and arg.keyword.value == name for arg in node.args):
            return node
        call = cst.ensure_type(add(node), cst.Call)
        at = next(index for index, arg in enumerate(call.args) if arg.keyword and arg.keyword.value == name)
        if not at:
            return call
        between: cst.BaseParenthesizableWhitespace = cst.SimpleWhitespace(" ")
        if column is not None:
            between = cst.ParenthesizedWhitespace(last_line=cst.SimpleWhitespace(" " * column))
        before = call.args[at - 1].with_changes(comma=cst.Comma(whitespace_after=between))
        return call.with_changes(args=[*call.args[: at - 1], before, *call.args[at:]])

    return transform
