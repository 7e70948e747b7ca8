"""An argument more in a call that others edit too, where its lines have room for it."""

from __future__ import annotations

import ast

from transplt.base.finding import Level
from transplt.edits.trees.calls import with_new_keyword
from transplt.edits.work import Work
from transplt.edits.writer import Writer
from transplt.fixers.tuning_writer import rewrite_unless_gone, rewrites
from transplt.syntax.nodes import arguments_of, by_place

#: Calls on one line that would become longer than this go on below their first argument.
_LONGEST_LINE = 119
#: What an edit of the migration may add to a call: `, sampler=DistributedSampler(dataset)`.
_OTHER_EDIT = 30


def add_keyword(
    writer: Writer, call: ast.Call, code: str, message: str, name: str, value: str, *, api: str = ""
) -> bool:
    """A keyword argument more, unless something gave the call one of that name before."""
    others = sum(edit.node is call and edit.level is not Level.UNSAFE for edit in rewrites(writer))
    column = _below(writer.work.once(_line_ends), call, len(name) + len(value) + 3, others * _OTHER_EDIT)
    return rewrite_unless_gone(writer, call, code, message, with_new_keyword(name, value, column), api=api)


def _line_ends(work: Work) -> dict[int, int]:
    """By the id of a call: the column at which its last line ends, with the arguments that were added to it."""
    return {}


def _below(ends: dict[int, int], call: ast.Call, width: int, before: int) -> int | None:
    """The column at which an argument of a width goes on a line of its own, None where it stays on the last line.

    `before` is by how much other edits of the call may make it longer.
    """
    given = by_place(arguments_of(call))
    if not given or not call.end_lineno:
        return None
    last = given[-1]
    starts = {_first_line(call, each) for each in given}
    many = len(starts) > 1 or last.lineno > call.lineno
    line = _first_line(call, last)
    on_line = [each for each in given if _first_line(call, each) == line]
    if many and len(on_line) == 1:
        return _column(call, last)  # each argument has a line of its own, or the last one has
    end = ends.get(id(call), (last.end_col_offset or 0) + before)
    if end + width + 1 <= _LONGEST_LINE:
        ends[id(call)] = end + width
        return None
    column = _column(call, on_line[0]) if many else (call.func.end_col_offset or 0) + 1
    ends[id(call)] = column + width
    return column


def _first_line(call: ast.Call, node: ast.expr) -> int:
    return next((each.lineno for each in call.keywords if each.value is node), node.lineno)


def _column(call: ast.Call, node: ast.expr) -> int:
    return next((each.col_offset for each in call.keywords if each.value is node), node.col_offset)
