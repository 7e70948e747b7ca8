"""The lines that a line of a file may hang on: what gave its names their values, and the conditions above it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from transplt.base.grouped import grouped
from transplt.proof.prove.rank_conditions import blocks, leaving, parsed
from transplt.syntax.nodes import last_name
from transplt.syntax.scan import FUNCTIONS

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_HEADERS = (*_LOOPS, ast.If, ast.With, ast.AsyncWith)
#: A name, and the function that it is one of ("" for those of the module, and for attributes and calls).
_Name = tuple[str, str]


@dataclass(eq=False)
class _Line:
    first: int
    last: int
    above: tuple[_Line, ...]
    reads: set[_Name] = field(default_factory=set)
    writes: set[_Name] = field(default_factory=set)


def behind(text: str, line: int) -> Iterator[range]:
    """The statements (of a header the header) that this line hangs on, itself first: the nearest by the way that values
    took, of those as near the ones above it. Flow is not looked at: each line that gives a name a value may have."""
    lines: list[_Line] = []
    _read(parsed(text).body, "", (), lines)
    writers = grouped((name, each) for each in lines for name in each.writes)
    level = [each for each in lines if each.first <= line <= each.last][-1:]
    seen = {*level}
    while level:
        for each in sorted(level, key=lambda each: (each.first > line, abs(each.first - line))):
            yield range(each.first, each.last + 1)
        # A name of the module is read by what has none of its own.
        named = (writers.get(name) or writers.get((name[0], ""), []) for each in level for name in each.reads)
        found = {each for every in (*named, *(each.above for each in level)) for each in every}
        level = [each for each in found if each not in seen]
        seen |= {*level}


def behind_loop(text: str, line: int) -> int:
    """The line of the first statement behind the loop that begins in this line and reads what that writes; that line,
    where there is none."""
    every = (block for node in ast.walk(parsed(text)) for _, block in blocks(node))
    loops = ((block[at:], each) for block in every for at, each in enumerate(block) if isinstance(each, _LOOPS))
    for rest, loop in loops:
        lines: list[_Line] = []
        _read(rest if loop.lineno == line else [], "", (), lines)
        within = [each for each in lines if loop.lineno < each.first <= (loop.end_lineno or line)]
        written = {name for each in within for name in each.writes if not name[0].endswith("()")}
        later = [each.first for each in lines if each not in within and each.first > line and each.reads & written]
        if later:
            return later[0]
    return line


def _read(body: list[ast.stmt], function: str, above: tuple[_Line, ...], lines: list[_Line]) -> None:
    for statement in body:
        parts = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
        parts += [handler.body for handler in getattr(statement, "handlers", ())]
        inner: list[list[ast.stmt]] = [*filter(None, parts)]
        last = inner[0][0].lineno - 1 if inner else statement.end_lineno or statement.lineno
        own = _Line(statement.lineno, max(last, statement.lineno), above)
        lines.append(own)
        if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
            if isinstance(statement, FUNCTIONS):
                every = statement.args
                own.writes = {(each.arg, statement.name) for each in (*every.args, *every.kwonlyargs)}
                own.reads = {(f"{statement.name}()", "")}
            _read(statement.body, getattr(statement, "name", ""), (), lines)
            continue
        _note(statement, inner, function, own)
        around = (*above, own) if isinstance(statement, _HEADERS) else above
        start = len(lines)
        for block in inner:
            _read(block, function, around, lines)
        if isinstance(statement, _LOOPS):  # what ends a loop decides how often its lines run
            ends = {each.lineno for part in statement.body for each in leaving(part)}
            out = [each for each in lines[start:] if each.first in ends]
            for each in lines[start:]:
                each.above += tuple(end for end in out if end is not each)


def _note(statement: ast.stmt, inner: list[list[ast.stmt]], function: str, own: _Line) -> None:
    """What a statement reads and gives values to; a call may change all that it is given."""
    within = {id(node) for block in inner for part in block for node in ast.walk(part)}
    called = getattr(getattr(statement, "value", None), "func", None) if isinstance(statement, ast.Expr) else None
    changed = [*getattr(statement, "targets", ()), getattr(statement, "target", None), statement if called else None]
    stored = {id(node) for part in changed if part is not None for node in ast.walk(part)} - {id(called)}
    for node in ast.walk(statement):
        if isinstance(node, ast.Name | ast.Attribute) and id(node) not in within:
            name = (node.id, function) if isinstance(node, ast.Name) else (f".{node.attr}", "")
            if id(node) in stored or not isinstance(node.ctx, ast.Load):
                own.writes.add(name)
            if isinstance(node.ctx, ast.Load):
                own.reads.add(name)
        elif isinstance(node, ast.Call) and id(node) not in within:
            own.writes.add((f"{last_name(node.func)}()", ""))
    if isinstance(statement, ast.Return):
        own.writes |= {(function, ""), (f".{function}", "")}
