"""Lines: those that go in beside a statement, statements that move one level in, statements that go."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from transplt.edits.edit import Around, Beside, Edit, Extent
from transplt.finding import Level
from transplt.syntax.asks import block_of
from transplt.syntax.scan import parent
from transplt.text.lexer import lines_in_strings
from transplt.text.source import Source


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


def lead_of(source: Source, offset: int) -> str:
    """What to write before a line that goes in at an offset: a line end where the file ends without one."""
    ends = offset < len(source.utf8) or source.utf8.endswith((b"\n", b"\r"))
    return "" if ends else source.newline()


def indent_of(source: Source, node: ast.stmt) -> str:
    """What stands before a statement on its line."""
    start = source.line_starts[node.lineno - 1]
    return source.slice(start, start + node.col_offset)


def indent_unit(source: Source, tree: ast.Module) -> str:
    """One level of indentation as the file has it; four blanks when it has none."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(node, ast.stmt) and isinstance(body, list) and body and body[0].lineno > node.lineno:
            outer, inner = indent_of(source, node), indent_of(source, body[0])
            if not inner.strip() and inner.startswith(outer) and inner != outer:
                return inner[len(outer) :]
    return "    "


def owns_its_lines(source: Source, node: ast.stmt) -> bool:
    """True when nothing but blanks stands before a statement, and nothing but a comment behind it."""
    if indent_of(source, node).strip(" \t\f"):
        return False
    last = node.end_lineno or node.lineno
    start = source.line_starts[last - 1] + (node.end_col_offset or 0)
    end = source.line_starts[last] if last < len(source.line_starts) else len(source.utf8)
    rest = source.slice(start, end).strip()
    return not rest or rest.startswith("#")


def has_room(source: Source, node: ast.stmt) -> bool:
    """True when lines can go in around a statement: it owns its lines, or shares them in a way that can be parted."""
    if owns_its_lines(source, node):
        return True
    block = block_of(node)
    last = source.line_text(last_line(node)).encode()[node.end_col_offset or 0 :].strip()
    follows = any(other.lineno == last_line(node) and other is not node for other in block[block.index(node) + 1 :])
    above = parent(block[0])
    return (follows or not last.strip(b"; \t") or b"#" in last) and (
        not _shares_its_start(source, block[0]) or isinstance(above, (ast.stmt, ast.ExceptHandler))
    )


def whole_lines(source: Source, node: ast.stmt) -> Extent:
    """The bytes of the lines of a statement, line ends included."""
    return line_start(source, node.lineno), line_start(source, last_line(node) + 1)


# --- lines that go in ------------------------------------------------------------------------------------------------


def alone(source: Source, edit: Edit) -> Placed:
    """Lines beside a statement that nothing else is put around."""
    return _beside(source, edit, _place(edit), 0)


def around_statements(source: Source, tree: ast.Module, edits: Sequence[Edit]) -> list[Placed]:
    """The lines of edits that were asked for one by one, and what moves in: by offset, fitted together.

    Statements that share a line are parted where lines go in between them.
    """
    unit = indent_unit(source, tree)
    wraps = [(edit, edit.where) for edit in edits if isinstance(edit.where, Around)]
    spans = {id(wrap): (_span(source, wrap.first)[0], _span(source, wrap.last)[1]) for _, wrap in wraps}
    # (offset, group, order inside the group) sorts what goes in at one place
    found: list[tuple[tuple[int, int, int, int], Placed]] = []
    for edit in edits:
        if not isinstance(edit.where, Beside):
            continue
        node, below = edit.where.node, edit.where.below
        start, end = _span(source, node)
        if below:
            depth = sum(_holds(spans[id(wrap)], start, end) and end < spans[id(wrap)][1] for _, wrap in wraps)
        else:
            depth = sum(_holds(spans[id(wrap)], start, end) and spans[id(wrap)][0] < start for _, wrap in wraps)
        item = _beside(source, edit, edit.where, depth, unit)
        found.append(((item.start, 0 if below else 1, -node.col_offset if below else 0, len(found)), item))
    for index, (edit, wrap) in enumerate(wraps):
        start, end = spans[id(wrap)]
        depth = sum(
            other is not wrap
            and _holds(spans[id(other)], start, end)
            and (spans[id(other)] != spans[id(wrap)] or at < index)
            for at, (_, other) in enumerate(wraps)
        )
        text = f"{block_indent(source, wrap.first, unit)}{unit * depth}{edit.new}{source.newline()}"
        offset = _start(source, wrap.first)
        found.append(((offset, 2, -_lines(wrap), depth), placed(edit, offset, text)))
        first = first_line(wrap.first) + _shares_its_start(source, wrap.first)
        for line in _movable_lines(source, first, last_line(wrap.last)):
            offset = line_start(source, line)
            found.append(((offset, 3, 0, len(found)), placed(edit, offset, unit)))
    for edit, node in _parted(source, edits).values():
        start, end = _span(source, node)
        depth = sum(_holds(spans[id(wrap)], start, end) for _, wrap in wraps)
        indent = block_indent(source, node, unit) + unit * depth
        found.append(((start, 3, -1, 0), placed(edit, start, indent)))
        before = len(source.utf8[:start].rstrip(b" \t").removesuffix(b";").rstrip(b" \t"))
        found.append(((before, 4, 0, 0), placed(edit, before, source.newline(), start)))
    found.sort(key=lambda item: item[0])
    return [item for _, item in found]


# --- statements that share a line ------------------------------------------------------------------------------------


def block_indent(source: Source, node: ast.stmt, unit: str) -> str:
    """The indentation of the block of a statement, also of one behind `if x:` on its line."""
    block = block_of(node)
    if not _shares_its_start(source, block[0]):
        return indent_of(source, block[0])
    above = parent(block[0])
    assert isinstance(above, (ast.stmt, ast.ExceptHandler))
    return source.slice(source.line_starts[above.lineno - 1], source.offset(above.lineno, above.col_offset)) + unit


def _shares_its_start(source: Source, node: ast.stmt) -> bool:
    return bool(indent_of(source, node).strip(" \t\f"))


def _parted(source: Source, edits: Sequence[Edit]) -> dict[int, tuple[Edit, ast.stmt]]:
    """The statements that get a line of their own, by where they start, with the edit for whose lines they do."""
    found: dict[int, tuple[Edit, ast.stmt]] = {}
    for edit in edits:
        if isinstance(edit.where, Around):
            starts, ends = [edit.where.first], [edit.where.last]
        elif isinstance(edit.where, Beside):
            starts, ends = ([], [edit.where.node]) if edit.where.below else ([edit.where.node], [])
        else:
            continue
        touched = [*starts, *(behind for node in ends if (behind := _behind(node)) is not None)]
        touched += [block_of(node)[0] for node in (*starts, *ends)]
        for node in touched:
            if _shares_its_start(source, node):
                found.setdefault(source.extent(node)[0], (edit, node))
    return found


def _behind(node: ast.stmt) -> ast.stmt | None:
    """The next statement of the block, if it begins where a statement ends."""
    block = block_of(node)
    place = block.index(node) + 1
    return block[place] if place < len(block) and block[place].lineno == last_line(node) else None


def _start(source: Source, node: ast.stmt) -> int:
    """Where lines above a statement go in."""
    shares = _shares_its_start(source, node)
    return source.extent(node)[0] if shares else line_start(source, first_line(node))


def _span(source: Source, node: ast.stmt) -> Extent:
    return _start(source, node), source.extent(node)[1]


def _place(edit: Edit) -> Beside:
    assert isinstance(edit.where, Beside)
    return edit.where


def _beside(source: Source, edit: Edit, place: Beside, depth: int, unit: str = "") -> Placed:
    node, newline = place.node, source.newline()
    indent = (block_indent(source, node, unit) if unit else indent_of(source, node)) + unit * depth
    lines = str(edit.new).split("\n", place.verbatim_from)
    text = "".join(f"{indent}{line}{newline}" if line else newline for line in lines)
    if not place.below:
        if _shares_its_start(source, node):
            return placed(edit, _start(source, node), text)
        first = first_line(node)
        return placed(edit, line_start(source, first - (_comments(source, first) if place.above_comments else 0)), text)
    behind = _behind(node)
    offset = line_start(source, last_line(node) + 1) if behind is None else source.extent(behind)[0]
    return placed(edit, offset, lead_of(source, offset) + (newline if place.apart else "") + text)


def _holds(wrap: Extent, start: int, end: int) -> bool:
    return wrap[0] <= start and end <= wrap[1]


def _lines(wrap: Around) -> int:
    return last_line(wrap.last) - first_line(wrap.first)


def _comments(source: Source, line: int) -> int:
    """How many lines right above a line hold a comment only, at its indentation."""
    text = source.line_text(line)
    indent = text[: len(text) - len(text.lstrip())]
    count = 0
    while line - count > 1 and source.line_text(line - count - 1).startswith(f"{indent}#"):
        count += 1
    return count


def _movable_lines(source: Source, first: int, last: int) -> list[int]:
    """The lines from `first` to `last` that get more indentation: none that is empty or begins inside a string."""
    inside = lines_in_strings(source)
    return [line for line in range(first, last + 1) if line not in inside and source.line_text(line).strip()]
