"""Statements that share their line with others: where the line is parted, and what stands before each statement then.

`a; b` is parted at `b`, `if x: a` behind the colon. Only as much of a line is parted as lines beside a statement need.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from transplt.base.text.lexer import lex
from transplt.base.text.source import Source
from transplt.syntax.nodes import block_of
from transplt.syntax.scan import ancestor, parent

#: Blanks, and line ends that a backslash takes back, at the end of what stands before a statement.
_BEFORE = re.compile(rb"(?:[ \t\f]|\\(?:\r\n|\r|\n))*\Z")
_TO_THE_LINE_END = re.compile(rb"[^\r\n]*")


@dataclass(frozen=True, slots=True)
class Joint:
    """What stands between a statement and what its line holds before it: bytes `start` to `end`, `;` or blanks.

    `suite`: before it stands the colon of the header that it belongs to.
    """

    start: int
    end: int
    suite: bool


def joint_before(source: Source, node: ast.stmt) -> Joint | None:
    """The joint in front of a statement; None for one that begins its line."""
    start = source.extent(node)[0]
    at = _blanks_before(source, start)
    last = source.utf8[at - 1 : at]
    if last == b";":
        return Joint(_blanks_before(source, at - 1), start, suite=False)
    return Joint(at, start, suite=True) if last == b":" else None


def _blanks_before(source: Source, start: int) -> int:
    """Where the blanks in front of an offset begin, over the lines that a backslash continues."""
    line = source.position(start)[0]
    while line > 1 and _continued(source, line - 1):
        line -= 1
    begin = source.line_starts[line - 1]
    found = _BEFORE.search(source.utf8[begin:start])
    return begin + (found.start() if found else start - begin)


def _continued(source: Source, line: int) -> bool:
    """True for a line that ends with a backslash which is no part of a comment."""
    if not source.line_text(line).endswith("\\"):
        return False
    end = source.line_starts[line] - 1
    return not any(each.is_comment and each.start < end <= each.end + 1 for each in lex(source.utf8))


def joined_behind(source: Source, node: ast.stmt) -> ast.stmt | None:
    """The next statement of the block, when it stands on the same line behind a `;`."""
    block = block_of(node)
    index = next(at for at, item in enumerate(block) if item is node)
    behind = block[index + 1] if index + 1 < len(block) else None
    return behind if behind is not None and joint_before(source, behind) is not None else None


def parted_for(source: Source, first: ast.stmt, last: ast.stmt, *, above: bool, below: bool) -> list[ast.stmt]:
    """The statements in front of which lines are parted, so that others can go in above `first` or below `last`."""
    found: list[ast.stmt] = []
    head = block_of(first)[0]
    joint = joint_before(source, head)
    if joint is not None and joint.suite:
        found.append(head)
    if above and first is not head and joint_before(source, first) is not None:
        found.append(first)
    behind = joined_behind(source, last) if below else None
    return found if behind is None else [*found, behind]


def can_part(source: Source, node: ast.stmt) -> bool:
    """True when a statement has its lines for itself, or can get them.

    It cannot where a comment on a shared line speaks to transplt (it would stay with the last statement only), below a
    line that holds nothing but a backslash, and in a `case` whose header begins on another line than its pattern.
    """
    start = source.extent(node)[0]
    joint, at = joint_before(source, node), _blanks_before(source, start)
    if joint is None and source.utf8[at:start].strip(b" \t\f"):
        return False
    last = node
    while (behind := joined_behind(source, last)) is not None:
        last = behind
    if joint is None and last is node:
        return True
    rest = _TO_THE_LINE_END.match(source.utf8, source.extent(last)[1])
    return not (rest and b"transplt:" in rest.group()) and _header_indent(source, node) is not None


# --- indentation -----------------------------------------------------------------------------------------------------


def indent_of(source: Source, node: ast.stmt) -> str:
    """What stands before a statement on its line; of one that shares it, what will when the line is parted."""
    if joint_before(source, node) is None:
        return _written_before(source, node)
    head = block_of(node)[0]
    joint = joint_before(source, head)
    if joint is None or not joint.suite:
        return _written_before(source, head)
    tree = ancestor(node, ast.Module, "_module")
    assert isinstance(tree, ast.Module)
    return (_header_indent(source, node) or "") + indent_unit(source, tree)


def _header_indent(source: Source, node: ast.stmt) -> str | None:
    """What stands before the header that a statement belongs to; None where that is not known."""
    above = parent(node)
    if isinstance(above, ast.Module):
        return ""
    if isinstance(above, (ast.stmt, ast.ExceptHandler)):
        return _written_before(source, above)
    if isinstance(above, ast.match_case):
        text = source.line_text(above.pattern.lineno)
        bare = text.lstrip(" \t\f")
        return text[: len(text) - len(bare)] if bare.startswith("case") else None
    return None


def _written_before(source: Source, node: ast.stmt | ast.ExceptHandler) -> str:
    start = source.line_starts[node.lineno - 1]
    return source.slice(start, start + node.col_offset)


def statement_separator(source: Source, node: ast.stmt) -> str:
    """What stands between two statements that take the place of one: a new line as deep, or `; ` on a shared line."""
    text = source.line_text(node.lineno)
    before = text.encode()[: node.col_offset].decode()
    after = source.line_text(node.end_lineno or node.lineno).encode()[node.end_col_offset :].decode().strip()
    if before.strip() or after.startswith(";"):
        return "; "
    return source.newline() + before


def indent_unit(source: Source, tree: ast.Module) -> str:
    """One level of indentation as the file has it; four blanks when it has none."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(node, ast.stmt) and isinstance(body, list) and body and body[0].lineno > node.lineno:
            outer, inner = _written_before(source, node), _written_before(source, body[0])
            deeper = not inner.strip() and inner.startswith(outer) and inner != outer
            if deeper and joint_before(source, body[0]) is None:
                return inner[len(outer) :]
    return "    "
