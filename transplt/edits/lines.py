"""Lines: those that go in beside a statement, statements that move one level in, statements that go."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from transplt.base.finding import Level
from transplt.base.text.lexer import lines_in_strings
from transplt.base.text.source import Source
from transplt.edits.edit import Around, Beside, Edit, Extent
from transplt.edits.shared_lines import indent_of, indent_unit, joined_behind, joint_before, parted_for

#: What the record of a line end in the place of a `;` says.
PARTED = "a separate line"


@dataclass(frozen=True, slots=True)
class Placed:
    """Text in the place of the bytes from `start` to `end`: lines that go in (start and end are one) or out."""

    start: int
    end: int
    text: str
    code: str
    message: str
    level: Level = Level.SAFE
    group: str = ""


def placed(edit: Edit, start: int, text: str, end: int | None = None) -> Placed:
    """The text of an edit at a byte offset."""
    return Placed(start, start if end is None else end, text, edit.code, edit.message, edit.level, edit.group)


def joined(lines: Iterable[Placed]) -> list[Placed]:
    """One piece of text for each offset: what goes in at one place is one record, in the order given."""
    by_offset: dict[int, Placed] = {}
    for item in lines:
        first = by_offset.get(item.start)
        if first is not None:
            messages = dict.fromkeys([*first.message.split("; "), item.message])
            level = item.level if first.level is Level.SAFE else first.level
            item = replace(first, text=first.text + item.text, message="; ".join(messages), level=level)
        by_offset[item.start] = item
    return list(by_offset.values())


# --- lines as they lie -----------------------------------------------------------------------------------------------


def first_line(node: ast.stmt) -> int:
    """The first line of a statement, its decorators included."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def last_line(node: ast.stmt) -> int:
    """The last line of a statement."""
    return node.end_lineno or node.lineno


def line_start(source: Source, line: int) -> int:
    """Where a line (from 1) begins; the end of the file for the one behind the last."""
    return source.line_starts[line - 1] if line <= len(source.line_starts) else len(source.utf8)


def line_below(source: Source, node: ast.stmt) -> int:
    """Where the line below a statement begins; behind a backslash at its end the next line still belongs to it."""
    line, tail = last_line(node), source.slice(source.extent(node)[1], line_start(source, last_line(node) + 1))
    while tail.rstrip("\r\n").endswith("\\") and "#" not in tail and line < len(source.line_starts):
        line += 1
        tail = source.line_text(line)
    return line_start(source, line + 1)


def lead_of(source: Source, offset: int) -> str:
    """What to write before a line that goes in at an offset: a line end where the file ends without one."""
    ends = offset < len(source.utf8) or source.utf8.endswith((b"\n", b"\r"))
    return "" if ends else source.newline()


def blank_lines_above(source: Source, node: ast.stmt) -> str:
    """The line ends that a definition needs in front of it to stand two empty lines below what is above a statement."""
    first = first_line(node)
    first -= comments_above(source, first)
    above = [source.line_text(line) for line in (first - 1, first - 2) if line > 0]
    blank = 0
    while blank < len(above) and not above[blank].strip():
        blank += 1
    return "\n" * (2 - blank) if above else ""


class _Lines:
    """Where the lines of statements begin and end, when some statements that share one get lines of their own."""

    def __init__(self, source: Source, parted: Collection[ast.stmt]) -> None:
        self.source = source
        self.joints = {id(node): joint for node in parted if (joint := joint_before(source, node)) is not None}

    def start(self, node: ast.stmt) -> int:
        """Where the line of a statement begins: its own offset, when it is the line that is parted there."""
        joint = self.joints.get(id(node))
        return joint.end if joint is not None else line_start(self.source, first_line(node))

    def end(self, node: ast.stmt) -> int:
        """Where the line behind a statement begins."""
        behind = joined_behind(self.source, node) if self.joints else None
        if behind is not None and (joint := self.joints.get(id(behind))) is not None:
            return joint.end
        return line_below(self.source, node)

    def movable(self, start: int, end: int, in_strings: Collection[int]) -> list[int]:
        """Where the lines in a range begin that get more indentation: none that is empty or begins inside a string."""
        source, joints = self.source, self.joints.values()
        found = [joint.end for joint in joints if start <= joint.end < end]
        for line in range(source.position(start)[0], len(source.line_starts) + 1):
            offset = line_start(source, line)
            if offset >= end:
                break
            if offset < start or line in in_strings or not source.line_text(line).strip():
                continue
            if not any(joint.start < offset <= joint.end for joint in joints):
                found.append(offset)
        return found


def own_lines(source: Source, node: ast.stmt) -> tuple[Extent, tuple[ast.stmt, ...]]:
    """The bytes of the lines of a statement, line ends included; the statements whose line is parted for that."""
    parted = tuple(parted_for(source, node, node, above=True, below=True))
    lines = _Lines(source, parted)
    return (lines.start(node), lines.end(node)), parted


# --- lines that go in ------------------------------------------------------------------------------------------------


def alone(source: Source, edit: Edit) -> Placed:
    """Lines beside a statement that nothing else is put around."""
    assert isinstance(edit.where, Beside)
    return _beside(source, edit, edit.where, 0)


def around_statements(source: Source, tree: ast.Module, edits: Sequence[Edit]) -> list[Placed]:
    """The lines of edits that were asked for one by one, and what moves in: by offset, fitted together."""
    if not edits:
        return []
    unit = indent_unit(source, tree)
    wraps = [(edit, edit.where) for edit in edits if isinstance(edit.where, Around)]
    asked = _parted(source, edits)
    lines = _Lines(source, [node for node, _ in asked])
    # (offset, group, order inside the group) sorts what goes in at one place
    found: list[tuple[tuple[int, int, int, int], Placed]] = []
    for edit in edits:
        if not isinstance(edit.where, Beside):
            continue
        node, below = edit.where.node, edit.where.below
        depth = sum(_holds_beside(source, wrap, edit.where) for _, wrap in wraps)
        item = _beside(source, edit, edit.where, depth, unit, lines)
        found.append(((item.start, 0 if below else 1, -node.col_offset if below else 0, len(found)), item))
    in_strings = lines_in_strings(source) if wraps else set()
    for index, (edit, wrap) in enumerate(wraps):
        first, last = _span(source, wrap.first, wrap.last)
        depth = sum(
            other is not wrap
            and _holds(source, other, first, last)
            and (_span(source, other.first, other.last) != (first, last) or at < index)
            for at, (_, other) in enumerate(wraps)
        )
        indent, newline = f"{indent_of(source, wrap.first)}{unit * depth}", source.newline()
        text = f"{indent}{edit.new}{newline}" + "".join(f"{indent}{unit}{line}{newline}" for line in wrap.begins)
        start, end = lines.start(wrap.first), lines.end(wrap.last)
        found.append(((start, 2, -last, depth), placed(edit, start, text)))
        for offset in lines.movable(start, end, in_strings):
            found.append(((offset, 3, 0, len(found)), placed(edit, offset, unit)))
    for node, edit in asked:
        joint = lines.joints[id(node)]
        edit = replace(edit, message=PARTED)
        found.append(((joint.start, 0, 0, len(found)), placed(edit, joint.start, source.newline(), joint.end)))
        found.append(((joint.end, 4, 0, len(found)), placed(edit, joint.end, indent_of(source, node))))
    found.sort(key=lambda item: item[0])
    return [item for _, item in found]


def _parted(source: Source, edits: Sequence[Edit]) -> list[tuple[ast.stmt, Edit]]:
    """The statements whose line is parted in front of them, each with the first edit that needs it."""
    found: dict[int, tuple[ast.stmt, Edit]] = {}
    for edit in edits:
        where, nodes = edit.where, list(edit.parted)
        if isinstance(where, Beside):
            nodes += parted_for(source, where.node, where.node, above=not where.below, below=where.below)
        elif isinstance(where, Around):
            nodes += parted_for(source, where.first, where.last, above=True, below=True)
        for node in nodes:
            found.setdefault(id(node), (node, edit))
    return list(found.values())


def _beside(
    source: Source, edit: Edit, place: Beside, depth: int, unit: str = "", parted: _Lines | None = None
) -> Placed:
    node, newline = place.node, source.newline()
    parted = parted or _Lines(source, ())
    indent = indent_of(source, node) + unit * depth
    lines = str(edit.new).split("\n", place.verbatim_from)
    text = "".join(f"{indent}{line}{newline}" if line else newline for line in lines)
    if not place.below:
        offset = parted.start(node)
        if place.above_comments and id(node) not in parted.joints:
            first = first_line(node)
            offset = line_start(source, first - comments_above(source, first))
        return placed(edit, offset, text)
    offset = parted.end(node)
    return placed(edit, offset, lead_of(source, offset) + (newline if place.apart else "") + text)


def _begins(source: Source, node: ast.stmt) -> int:
    """The offset at which a statement begins, its decorators included."""
    first = first_line(node)
    return source.extent(node)[0] if first == node.lineno else line_start(source, first)


def _ends(source: Source, node: ast.stmt) -> int:
    return source.extent(node)[1]


def _span(source: Source, first: ast.stmt, last: ast.stmt) -> Extent:
    return _begins(source, first), _ends(source, last)


def _holds(source: Source, wrap: Around, first: int, last: int) -> bool:
    return _begins(source, wrap.first) <= first and last <= _ends(source, wrap.last)


def _holds_beside(source: Source, wrap: Around, place: Beside) -> bool:
    """True where lines beside a statement come to lie in what is put around."""
    first, last = _span(source, place.node, place.node)
    if not _holds(source, wrap, first, last):
        return False
    if place.below:
        return last < _ends(source, wrap.last) or first > _begins(source, wrap.last)
    return _begins(source, wrap.first) < first


def comments_above(source: Source, line: int) -> int:
    """How many lines right above a line hold a comment only, at its indentation."""
    text = source.line_text(line)
    indent = text[: len(text) - len(text.lstrip())]
    count = 0
    while line - count > 1 and source.line_text(line - count - 1).startswith(f"{indent}#"):
        count += 1
    return count
