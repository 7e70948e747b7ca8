"""The conditions under which a line of a program stands, and which of them ranks answer differently."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from transplt.base.text.frames import decoded
from transplt.base.text.regular_file import SOURCE, read_regular
from transplt.program.ranks import divides
from transplt.syntax.nodes import last_name

_LEAVING = frozenset({"exit", "_exit"})


class Condition(NamedTuple):
    """A header above a line: `text` is its condition, `way` the side of it that the line is on (`ended`: of a
    loop with as many passes on all ranks, which it ends), `divides` whether the rank decides."""

    path: str
    line: int
    text: str
    way: str
    divides: bool


def read_source(path: str) -> str | None:
    """The text of a file; None for one that cannot be read."""
    try:
        return decoded(read_regular(path, SOURCE)).text
    except OSError:
        return None


def parsed(text: str | None) -> ast.Module:
    """The tree of a text; an empty one where there is none, or it is not Python."""
    try:
        return ast.parse(text or "")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.parse("")


class Conditions:
    """Answers for many lines, reading each file once. `read` gives the text of a path."""

    def __init__(self, read: Callable[[str], str | None] = read_source) -> None:
        self._read = read
        self._files: dict[str, _File] = {}

    def of(self, path: str, line: int) -> list[Condition]:
        """What has to hold for a process to come to `line`, the innermost first."""
        if path not in self._files:
            self._files[path] = _File(parsed(self._read(path)))
        file = self._files[path]
        return [Condition(path, *found) for found in file.above(file.tree.body, line)][::-1]


#: line, text, way, divides
_Found = tuple[int, str, str, bool]


class _File:
    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        #: The program's own names -> names by which `divides` knows a rank, or a condition on it.
        self.names: dict[str, str] = {}
        for _ in range(2):  # `r = dist.get_rank()`, and then `first = r == 0`
            for node in ast.walk(tree):
                if isinstance(node, ast.Assign) and len(node.targets) == 1 and (name := last_name(node.targets[0])):
                    value = self.translated(node.value)
                    if divides(ast.Compare(value, [ast.Eq()], [ast.Constant(0)])):
                        self.names[name] = "rank"
                    elif divides(value):
                        self.names[name] = "is_main"

    def translated(self, node: ast.expr) -> ast.expr:
        """A copy of an expression with the names that `divides` knows."""
        new = copy.deepcopy(node)
        for each in ast.walk(new):
            if isinstance(each, ast.Name):
                each.id = self.names.get(each.id, each.id)
            elif isinstance(each, ast.Attribute):
                each.attr = self.names.get(each.attr, each.attr)
        return new

    def divides(self, test: ast.expr) -> bool:
        return divides(self.translated(test))

    def above(self, statements: Sequence[ast.stmt], line: int, loop: bool = False) -> Iterator[_Found]:
        """The headers above a line in a block, the outermost first; `loop`: of one that is a way of passes."""
        for position, statement in enumerate(statements):
            if statement.lineno <= line <= (statement.end_lineno or statement.lineno):
                for place, other in ((place, each) for place, part in enumerate(statements) for each in leaving(part)):
                    # The next pass of a loop is behind what ends it, be that above or below.
                    way = "ended" if loop and isinstance(other.body[-1], ast.Break | ast.Return) else "behind"
                    if place < position or way == "ended":
                        yield self._header(other, "if", other.test, way)
                yield from self._inside(statement, line)
                return

    def _inside(self, statement: ast.stmt, line: int) -> Iterator[_Found]:
        inner = [*blocks(statement)]
        for name, block in inner:
            if block and block[0].lineno <= line <= (block[-1].end_lineno or block[-1].lineno):
                if isinstance(statement, (ast.If, ast.While)):
                    word = "if" if isinstance(statement, ast.If) else "while"
                    yield self._header(statement, word, statement.test, name)
                elif isinstance(statement, (ast.For, ast.AsyncFor)) and self._counts_ranks(statement.iter):
                    text = f"for {ast.unparse(statement.target)} in {ast.unparse(statement.iter)}:"
                    yield statement.lineno, text, "loop", True
                counted = isinstance(statement, ast.For) and ast.unparse(statement.iter).startswith("range(")
                yield from self.above(block, line, (counted or isinstance(statement, ast.While)) and name == "body")
                return
        if not inner:
            yield from self._expressions(statement)

    def _header(self, node: ast.stmt, word: str, test: ast.expr, way: str) -> _Found:
        return node.lineno, f"{word} {ast.unparse(test)}:", way, self.divides(test)

    def _counts_ranks(self, node: ast.expr) -> bool:
        parts = [each for each in ast.walk(self.translated(node)) if isinstance(each, ast.expr)]
        return any(divides(ast.Compare(part, [ast.Eq()], [ast.Constant(0)])) for part in parts)

    def _expressions(self, statement: ast.stmt) -> Iterator[_Found]:
        """`rank == 0 and dist.barrier()`, `dist.barrier() if rank == 0 else None`."""
        for node in ast.walk(statement):
            if isinstance(node, (ast.BoolOp, ast.IfExp)):
                test = node.values[0] if isinstance(node, ast.BoolOp) else node.test
                if self.divides(test):
                    yield test.lineno, ast.unparse(node), "in", True


def leaving(node: ast.stmt) -> Iterator[ast.If]:
    """The conditions in a statement under which its block is left, in branches too."""
    match node:
        case ast.If(body=[*_, ast.Return() | ast.Continue() | ast.Break() | ast.Raise()], orelse=[]):
            yield node
        case ast.If(body=[*_, ast.Expr(value=ast.Call(func=func))], orelse=[]) if last_name(func) in _LEAVING:
            yield node
        case ast.If():
            for each in (*node.body, *node.orelse):
                yield from leaving(each)


def blocks(statement: ast.AST) -> Iterator[tuple[str, list[ast.stmt]]]:
    """The blocks of a statement, each with what it is: of handlers and cases a `part`."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(statement, name, None)
        if isinstance(block, list):
            yield name, block
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield "part", part.body
