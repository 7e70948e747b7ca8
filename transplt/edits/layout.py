"""Lines that go in around statements, and statements that move one level in: each asks by itself, together they fit."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from transplt.edits.indenting import indent_of, indent_unit, movable_lines, owns_its_lines
from transplt.edits.insertions import Insertion
from transplt.finding import Level
from transplt.text.source import Source


@dataclass(slots=True)
class _Lines:
    node: ast.stmt
    texts: tuple[str, ...]
    code: str
    message: str
    level: Level
    after: bool
    above_comments: bool = False


@dataclass(slots=True)
class _Wrap:
    first: ast.stmt
    last: ast.stmt
    header: str
    code: str
    message: str
    level: Level

    def holds(self, first: int, last: int) -> bool:
        return first_line(self.first) <= first and last <= last_line(self.last)


@dataclass(slots=True)
class Layout:
    """The new lines of one file. `insertions` renders them."""

    source: Source
    tree: ast.Module
    lines: list[_Lines] = field(default_factory=list)
    wraps: list[_Wrap] = field(default_factory=list)

    def fits(self, *nodes: ast.stmt) -> bool:
        """True when lines can go in around statements: they share their lines with no other."""
        return all(owns_its_lines(self.source, node) for node in nodes)

    def before(
        self,
        node: ast.stmt,
        texts: Sequence[str],
        code: str,
        message: str,
        level: Level = Level.SAFE,
        *,
        above_comments: bool = False,
    ) -> None:
        """Lines above a statement, at its indentation, outside of what wraps that statement from its first line on.

        `above_comments`: above the comments right above the statement too.
        """
        self.lines.append(_Lines(node, tuple(texts), code, message, level, False, above_comments))

    def after(self, node: ast.stmt, texts: Sequence[str], code: str, message: str, level: Level = Level.SAFE) -> None:
        """Lines below a statement, at its indentation."""
        self.lines.append(_Lines(node, tuple(texts), code, message, level, after=True))

    def wrap(self, nodes: Sequence[ast.stmt], header: str, code: str, message: str, level: Level = Level.SAFE) -> None:
        """Put neighbouring statements under a header (`if ...:`), one level in."""
        self.wraps.append(_Wrap(nodes[0], nodes[-1], header, code, message, level))

    def insertions(self) -> list[Insertion]:
        """What goes in, by offset."""
        source, newline = self.source, self.source.newline()
        unit = indent_unit(source, self.tree)
        # (offset, group, order inside the group) sorts what goes in at one place
        placed: list[tuple[tuple[int, int, int, int], Insertion]] = []
        for item in self.lines:
            first, last = first_line(item.node), last_line(item.node)
            depth = sum(
                wrap.holds(first, last) and (item.after or first_line(wrap.first) < first) for wrap in self.wraps
            )
            if item.after:
                depth = sum(wrap.holds(first, last) and last < last_line(wrap.last) for wrap in self.wraps)
            indent = indent_of(source, item.node) + unit * depth
            text = "".join(f"{indent}{line}{newline}" if line else newline for line in item.texts)
            offset = source.line_starts[first - 1 - (self._comments(first) if item.above_comments else 0)]
            if item.after:
                offset = source.line_starts[last] if last < len(source.line_starts) else len(source.utf8)
                if offset == len(source.utf8) and not source.utf8.endswith((b"\n", b"\r")):
                    text = newline + text
            group = 0 if item.after else 1
            order = -item.node.col_offset if item.after else 0
            placed.append(
                ((offset, group, order, len(placed)), Insertion(offset, text, item.code, item.message, item.level))
            )
        for wrap in self.wraps:
            first, last = first_line(wrap.first), last_line(wrap.last)
            depth = sum(
                other is not wrap and other.holds(first, last) and self._outside(other, wrap) for other in self.wraps
            )
            text = f"{indent_of(source, wrap.first)}{unit * depth}{wrap.header}{newline}"
            offset = source.line_starts[first - 1]
            placed.append(
                ((offset, 2, first - last, depth), Insertion(offset, text, wrap.code, wrap.message, wrap.level))
            )
            for line in movable_lines(source, first, last):
                offset = source.line_starts[line - 1]
                placed.append(
                    ((offset, 3, 0, len(placed)), Insertion(offset, unit, wrap.code, wrap.message, wrap.level))
                )
        placed.sort(key=lambda item: item[0])
        return [item for _, item in placed]

    def _comments(self, line: int) -> int:
        """How many lines right above a line hold a comment only, at its indentation."""
        text = self.source.line_text(line)
        indent = text[: len(text) - len(text.lstrip())]
        count = 0
        while line - count > 1 and self.source.line_text(line - count - 1).startswith(f"{indent}#"):
            count += 1
        return count

    def _outside(self, other: _Wrap, wrap: _Wrap) -> bool:
        same = first_line(other.first) == first_line(wrap.first) and last_line(other.last) == last_line(wrap.last)
        return not same or self.wraps.index(other) < self.wraps.index(wrap)


def first_line(node: ast.stmt) -> int:
    """The first line of a statement, its decorators included."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def last_line(node: ast.stmt) -> int:
    """The last line of a statement."""
    return node.end_lineno or node.lineno
